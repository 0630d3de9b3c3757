"""A Delta table as an output of the engine: each epoch is one commit, with its number as its application transaction."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from headrace.connectors.evolution import added
from headrace.connectors.output import Writer
from headrace.connectors.staged_output import StagedOutput
from headrace.connectors.staging import REMOVED

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeltaOutput(StagedOutput):
    """A table by its directory, its columns, and the key by which rows replace each other."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...]
    roll: timedelta | None = None
    compact_every: int = 0
    history: timedelta = timedelta(days=1)

    def make(self) -> None:
        kept = f"interval {int(self.history.total_seconds())} seconds"
        settings = {"delta.logRetentionDuration": kept, "delta.deletedFileRetentionDuration": kept, "delta.enableExpiredLogCleanup": "true"}
        DeltaTable.create(self.directory, self.columns, mode="ignore", configuration=settings)
        table = DeltaTable(self.directory)
        if new := added(pa.schema(table.schema().to_arrow()), self.columns, f"Delta table {self.directory}"):
            table.alter.add_columns(Schema.from_arrow(pa.schema(new)).fields)

    @property
    def staged_in(self) -> Path:
        # Delta's readers and its vacuum ignore names that begin with an underscore.
        return self.directory / "_headrace"

    def committed(self, job: str, sink: str) -> int:
        found = DeltaTable(self.directory).transaction_version(f"{job}/{sink}")
        return -1 if found is None else found

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        properties = CommitProperties(app_transactions=[Transaction(f"{writer.job}/{writer.sink}", epoch)])
        table = DeltaTable(self.directory)
        if self.key:
            self._merge(table, rows, properties)
        else:
            # Columns that results no longer have stay, and are null.
            write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
        if self.compact_every and table.version() % self.compact_every == 0:
            _compact(table)

    def _merge(self, table: DeltaTable, rows: pa.Table, properties: CommitProperties) -> None:
        same = " AND ".join(f'held."{name}" IS NOT DISTINCT FROM made."{name}"' for name in self.key)
        merge = table.merge(rows, same, source_alias="made", target_alias="held", commit_properties=properties)
        values = {f'"{name}"': f'made."{name}"' for name in self.columns.names}
        kept = f"made.{REMOVED} = false"
        merge.when_matched_delete(f"made.{REMOVED}").when_matched_update(values, kept).when_not_matched_insert(values, kept).execute()


def _compact(table: DeltaTable) -> None:
    """Merge small files, and remove those that no kept version of the table needs."""
    try:
        table.optimize.compact()
    except CommitFailedError as error:
        # Another writer changed these files meanwhile; the next commit tries again.
        _log.info("the small files of %s stay for now: %s", table.table_uri, error)
        return
    table.vacuum(dry_run=False)
