"""A directory of Parquet files as an output of the engine: the file of an epoch is renamed into its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.lake.evolution import added
from headrace.connectors.output import Writer
from headrace.connectors.staged import StagedOutput


@dataclass(frozen=True)
class ParquetOutput(StagedOutput):
    """A directory, and the columns of its files."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...] = ()

    def prepare(self, tasks: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        newest = max(self.directory.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns, default=None)
        if newest is not None:
            added(pq.read_schema(newest), self.columns, f"the Parquet files in {self.directory}")

    @property
    def staged_in(self) -> Path:
        return self.directory / ".staged"

    def committed(self, job: str, sink: str) -> int:
        prefix = _prefix(job, sink)
        files = [path for path in self.directory.glob("*.parquet") if path.name.startswith(prefix)]
        return max((int(path.stem.removeprefix(prefix)) for path in files), default=-1)

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        place = self.directory / f"{_prefix(writer.job, writer.sink)}{epoch:012}.parquet"
        fresh = place.with_name(f".{place.name}.new")
        with fresh.open("wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(place)


def _prefix(job: str, sink: str) -> str:
    return f"{quote(job, safe='')}-{quote(sink, safe='')}-"
