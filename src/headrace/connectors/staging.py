"""Staging of the files of an epoch until the driver commits them at once.

`<directory>/<job>/<sink>/<epoch>/<task>-<run>.parquet`, written under another name and renamed. The first attempt of a task counts. The
file `committed` next to the epochs caches the last one that the table has: reading the table itself takes longer the larger it is.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.core.files.disk import make_directory, sync_directory

# Marks removed rows; files of sinks that never remove rows do not have it.
REMOVED = "_removed"
_NOTE, _DOUBT = "committed", "?"


@dataclass(frozen=True)
class Staging:
    """The uncommitted files of one sink of one job."""

    directory: Path
    job: str
    sink: str

    @property
    def path(self) -> Path:
        return self.directory / quote(self.job, safe="") / quote(self.sink, safe="")

    def put(self, writer: Writer, epoch: int, table: pa.Table) -> bool:
        """Stage the rows of a task in an epoch; False if it has done so, in this run or another: the first attempt counts."""
        place = self.path / str(epoch) / f"{writer.task}-{writer.generation}.parquet"
        if any(place.parent.glob(f"{writer.task}-*.parquet")):
            return False
        make_directory(place.parent)
        failpoints.reach("stage.before")
        # Another attempt of the task may be doing it.
        fresh = write_fresh(table, place, secrets.token_hex(4))
        failpoints.reach("stage.middle")
        put_in_place(fresh, place)
        failpoints.reach("stage.after")
        return True

    def epochs(self, up_to: int) -> Iterator[tuple[int, pa.Table]]:
        """The staged epochs up to this one, in order, with the rows of all tasks."""
        for epoch in self.numbers(up_to):
            yield epoch, pa.concat_tables([pq.read_table(file) for file in self._files(epoch)], promote_options="default")

    def files(self, up_to: int) -> list[Path]:
        """The files of the staged epochs up to this one."""
        return [file for epoch in self.numbers(up_to) for file in self._files(epoch)]

    def remove(self, epoch: int) -> None:
        """Remove the files of a committed epoch."""
        shutil.rmtree(self.path / str(epoch), ignore_errors=True)

    def forget(self, epoch: int) -> None:
        """Remove the files of an epoch and of later ones."""
        for path in self.path.glob("[0-9]*"):
            if int(path.name) >= epoch:
                self.remove(int(path.name))

    def numbers(self, up_to: int) -> list[int]:
        """The staged epochs up to this one."""
        numbers = (int(path.name) for path in self.path.glob("[0-9]*")) if self.path.is_dir() else ()
        return sorted(number for number in numbers if number <= up_to)

    def _files(self, epoch: int) -> list[Path]:
        newest: dict[int, tuple[int, Path]] = {}
        for file in (self.path / str(epoch)).glob("[0-9]*.parquet"):
            task, generation = map(int, file.stem.split("-"))
            newest[task] = max(newest.get(task, (-1, file)), (generation, file))
        return [file for _, (_, file) in sorted(newest.items())]

    def enter(self, writer: Writer) -> None:
        """Refuse a writer if a newer run has written; otherwise record it as the newest."""
        place = self.path / "runs"
        place.mkdir(parents=True, exist_ok=True)
        runs = [int(path.name) for path in place.iterdir()]
        if max(runs, default=-1) > writer.generation:
            raise writer.fenced()
        (place / str(writer.generation)).touch()
        # The newest file alone fences earlier runs.
        for run in runs:
            if run < writer.generation:
                (place / str(run)).unlink(missing_ok=True)

    def record(self, epoch: int, *, sure: bool = True) -> None:
        """Record the last committed epoch; not `sure` while the commit of a later one is under way."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = self.path / f".{_NOTE}.{os.getpid()}"
        fresh.write_text(f"{epoch}{'' if sure else _DOUBT}", encoding="ascii")
        fresh.rename(self.path / _NOTE)

    def recorded(self, *, sure: bool) -> int | None:
        """The last committed epoch, at least, or exactly if it is to be `sure`; None if only the table knows."""
        try:
            found = (self.path / _NOTE).read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        return None if sure and found.endswith(_DOUBT) else int(found.removesuffix(_DOUBT))


def forget_recorded(directory: Path) -> None:
    """Let every sink that stages files here ask its table again, as after a power cut, which the cached epochs may not survive."""
    for note in directory.glob(f"*/*/{_NOTE}"):
        note.unlink(missing_ok=True)


def write_fresh(table: pa.Table, place: Path, attempt: str = "") -> Path:
    """Write a table next to the place of its file, under a name that no reader and no other attempt uses; its bytes are durable."""
    # Not *.parquet: some readers also read hidden files.
    fresh = place.with_name(f".{place.name}{attempt and f'.{attempt}'}.new")
    with fresh.open("wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def put_in_place(fresh: Path, place: Path) -> None:
    """Make a file visible to readers, complete and durable: also when the machine dies at once."""
    fresh.rename(place)
    sync_directory(place.parent)
