"""A directory of Parquet files as an output of the engine: the file of an epoch is renamed into its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.lake.staging import Staging
from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.core import failpoints


@dataclass(frozen=True)
class ParquetOutput:
    """A directory, and the columns of its files."""

    directory: Path
    columns: pa.Schema

    def prepare(self, tasks: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        staging = self._staging(writer.job, writer.sink)
        staging.enter(writer)
        if self._last(writer.job, writer.sink) >= epoch:
            return False
        return staging.put(writer, epoch, table_of(changes.frame, self.columns))

    def publish(self, job: str, sink: str, epoch: int) -> None:
        staging = self._staging(job, sink)
        for number, table in staging.epochs(epoch):
            place = self.directory / f"{self._prefix(job, sink)}{number:012}.parquet"
            if not place.exists():
                fresh = place.with_name(f".{place.name}.new")
                with fresh.open("wb") as file:
                    pq.write_table(table, file)
                    file.flush()
                    os.fsync(file.fileno())
                failpoints.reach("parquet.publish.before")
                fresh.rename(place)
            staging.remove(number)

    def _last(self, job: str, sink: str) -> int:
        """The last epoch that has a file here."""
        prefix = self._prefix(job, sink)
        return max(
            (int(path.stem.removeprefix(prefix)) for path in self.directory.glob("*.parquet") if path.name.startswith(prefix)), default=-1
        )

    def _prefix(self, job: str, sink: str) -> str:
        return f"{quote(job, safe='')}-{quote(sink, safe='')}-"

    def _staging(self, job: str, sink: str) -> Staging:
        return Staging(self.directory / ".staged", job, sink)
