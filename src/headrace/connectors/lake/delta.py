"""A Delta table as an output of the engine: each epoch is one commit, with its number as the version of an application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from headrace.connectors.output import Writer
from headrace.connectors.staged import StagedOutput
from headrace.connectors.staging import REMOVED


@dataclass(frozen=True)
class DeltaOutput(StagedOutput):
    """A table by its directory, its columns, and the key by which rows replace each other."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...]

    def prepare(self, tasks: int) -> None:
        DeltaTable.create(self.directory, self.columns, mode="ignore")

    @property
    def staged_in(self) -> Path:
        # Delta's readers and its vacuum leave alone what begins with an underscore.
        return self.directory / "_headrace"

    def committed(self, job: str, sink: str) -> int:
        found = DeltaTable(self.directory).transaction_version(f"{job}/{sink}")
        return -1 if found is None else found

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        properties = CommitProperties(app_transactions=[Transaction(f"{writer.job}/{writer.sink}", epoch)])
        if not self.key:
            write_deltalake(self.directory, rows, mode="append", commit_properties=properties)
            return
        same = " AND ".join(f'held."{name}" IS NOT DISTINCT FROM made."{name}"' for name in self.key)
        merge = DeltaTable(self.directory).merge(rows, same, source_alias="made", target_alias="held", commit_properties=properties)
        values = {f'"{name}"': f'made."{name}"' for name in self.columns.names}
        kept = f"made.{REMOVED} = false"
        merge.when_matched_delete(f"made.{REMOVED}").when_matched_update(values, kept).when_not_matched_insert(values, kept).execute()
