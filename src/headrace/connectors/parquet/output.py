"""A directory of Parquet files as an output of the engine: the file of one epoch, or of several, is renamed into its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.evolution import added
from headrace.connectors.output import Writer
from headrace.connectors.staged import Epochs, StagedOutput
from headrace.connectors.staging import Staging, put_in_place, write_fresh

# What waits is shown before its time when it makes a large file, and one file has no more rows than fit into memory well.
_MUCH, _MOST = 64 << 20, 256 << 20


@dataclass(frozen=True)
class ParquetOutput(StagedOutput):
    """A directory, the columns of its files, and how long epochs wait to be united in one file."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...] = ()
    roll: timedelta | None = None

    def prepare(self, tasks: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        newest = max(self.directory.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns, default=None)
        if newest is not None:
            added(pq.read_schema(newest), self.columns, f"the Parquet files in {self.directory}")

    @property
    def staged_in(self) -> Path:
        return self.directory / ".staged"

    @property
    def waits(self) -> bool:
        return self.roll is not None

    def publish(self, job: str, sink: str, epoch: int) -> None:
        if self.roll is None or _due(Staging(self.staged_in, job, sink), epoch, self.roll):
            super().publish(job, sink, epoch)

    def united(self, epochs: Epochs) -> Iterator[list[tuple[int, pa.Table]]]:
        held: list[tuple[int, pa.Table]] = []
        for number, rows in epochs:
            held.append((number, rows))
            if self.roll is None or sum(table.nbytes for _, table in held) > _MOST:
                yield held
                held = []
        if held:
            yield held

    def committed(self, job: str, sink: str) -> int:
        prefix = _prefix(job, sink)
        files = [path for path in self.directory.glob("*.parquet") if path.name.startswith(prefix)]
        return max((int(path.stem.removeprefix(prefix)) for path in files), default=-1)

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        place = self.directory / f"{_prefix(writer.job, writer.sink)}{epoch:012}.parquet"
        put_in_place(write_fresh(rows, place), place)


def _due(staging: Staging, epoch: int, roll: timedelta) -> bool:
    """Whether what waits has waited long enough, or is much."""
    waiting = [file.stat() for file in staging.files(epoch)]
    since = min((file.st_mtime for file in waiting), default=None)
    return since is not None and (time.time() - since >= roll.total_seconds() or sum(file.st_size for file in waiting) >= _MUCH)


def _prefix(job: str, sink: str) -> str:
    return f"{quote(job, safe='')}-{quote(sink, safe='')}-"
