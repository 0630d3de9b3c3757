"""A directory of Parquet files as an output of the engine: the file of one epoch, or of several, is renamed into place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.evolution import added
from headrace.connectors.output import Writer
from headrace.connectors.staged_output import StagedOutput
from headrace.connectors.staging import put_in_place, write_fresh
from headrace.core.files.disk import make_directory


@dataclass(frozen=True)
class ParquetOutput(StagedOutput):
    """A directory, the columns of its files, and how long epochs wait to be merged into one file."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...] = ()
    roll: timedelta | None = None

    def make(self) -> None:
        make_directory(self.directory)
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
        put_in_place(write_fresh(rows, place), place)


def _prefix(job: str, sink: str) -> str:
    return f"{quote(job, safe='')}-{quote(sink, safe='')}-"
