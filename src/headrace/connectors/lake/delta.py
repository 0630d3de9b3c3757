"""A Delta table as an output of the engine: each epoch is one commit, with its number as the version of an application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from headrace.connectors.lake.staging import REMOVED, Staging
from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.core import failpoints


@dataclass(frozen=True)
class DeltaOutput:
    """A table by its directory, its columns, and the key by which rows replace each other."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...]

    def prepare(self, tasks: int) -> None:
        DeltaTable.create(self.directory, self.columns, mode="ignore")

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        staging = self._staging(writer.job, writer.sink)
        staging.enter(writer)
        if self._version(writer.job, writer.sink) >= epoch:
            return False
        table = table_of(changes.frame, self.columns)
        if self.key:
            removed = changes.removed if changes.removed is not None else pl.repeat(False, table.num_rows, eager=True)
            table = table.append_column(REMOVED, removed.to_arrow().cast(pa.bool_()))
        return staging.put(writer, epoch, table)

    def publish(self, job: str, sink: str, epoch: int) -> None:
        staging = self._staging(job, sink)
        for number, rows in staging.epochs(epoch):
            if self._version(job, sink) < number:
                failpoints.reach("delta.commit.before")
                self._commit(rows, CommitProperties(app_transactions=[Transaction(f"{job}/{sink}", number)]))
                failpoints.reach("delta.commit.after")
            staging.remove(number)

    def _commit(self, rows: pa.Table, properties: CommitProperties) -> None:
        if not self.key:
            write_deltalake(self.directory, rows, mode="append", commit_properties=properties)
            return
        same = " AND ".join(f'held."{name}" IS NOT DISTINCT FROM made."{name}"' for name in self.key)
        merge = DeltaTable(self.directory).merge(rows, same, source_alias="made", target_alias="held", commit_properties=properties)
        values = {f'"{name}"': f'made."{name}"' for name in self.columns.names}
        kept = f"made.{REMOVED} = false"
        merge.when_matched_delete(f"made.{REMOVED}").when_matched_update(values, kept).when_not_matched_insert(values, kept).execute()

    def _version(self, job: str, sink: str) -> int:
        found = DeltaTable(self.directory).transaction_version(f"{job}/{sink}")
        return -1 if found is None else found

    def _staging(self, job: str, sink: str) -> Staging:
        # Delta's readers and its vacuum leave alone what begins with an underscore.
        return Staging(self.directory / "_headrace", job, sink)
