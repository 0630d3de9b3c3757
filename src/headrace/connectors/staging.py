"""Where tasks put the files of an epoch until the driver makes one commit of them.

`<directory>/<job>/<sink>/<epoch>/<task>-<run>.parquet`, written under another name and renamed. Of several runs the newest counts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.log.disk import sync_directory

# Rows that are gone are marked by it; where nothing is ever removed, files do not have it.
REMOVED = "_removed"


@dataclass(frozen=True)
class Staging:
    """The files of one sink of one job that are not committed yet."""

    directory: Path
    job: str
    sink: str

    @property
    def path(self) -> Path:
        return self.directory / quote(self.job, safe="") / quote(self.sink, safe="")

    def put(self, writer: Writer, epoch: int, table: pa.Table) -> bool:
        """Stage what a task made in an epoch; False if this run or a newer one of the task has done so."""
        place = self.path / str(epoch) / f"{writer.task}-{writer.generation}.parquet"
        if place.exists():
            return False
        again = any(place.parent.glob(f"{writer.task}-*.parquet"))
        place.parent.mkdir(parents=True, exist_ok=True)
        failpoints.reach("stage.before")
        fresh = write_fresh(table, place)
        failpoints.reach("stage.middle")
        put_in_place(fresh, place)
        failpoints.reach("stage.after")
        return not again

    def epochs(self, up_to: int) -> Iterator[tuple[int, pa.Table]]:
        """The staged epochs up to this one, in their order, with the rows of all tasks."""
        for epoch in self._epochs(up_to):
            yield epoch, pa.concat_tables([pq.read_table(file) for file in self._files(epoch)], promote_options="default")

    def files(self, up_to: int) -> list[Path]:
        """The files of the staged epochs up to this one."""
        return [file for epoch in self._epochs(up_to) for file in self._files(epoch)]

    def remove(self, epoch: int) -> None:
        """Forget an epoch that is committed."""
        shutil.rmtree(self.path / str(epoch), ignore_errors=True)

    def forget(self, epoch: int) -> None:
        """Forget an epoch and those after it."""
        for path in self.path.glob("[0-9]*"):
            if int(path.name) >= epoch:
                self.remove(int(path.name))

    def _epochs(self, up_to: int) -> list[int]:
        numbers = (int(path.name) for path in self.path.glob("[0-9]*")) if self.path.is_dir() else ()
        return sorted(number for number in numbers if number <= up_to)

    def _files(self, epoch: int) -> list[Path]:
        newest: dict[int, tuple[int, Path]] = {}
        for file in (self.path / str(epoch)).glob("[0-9]*.parquet"):
            task, generation = map(int, file.stem.split("-"))
            newest[task] = max(newest.get(task, (-1, file)), (generation, file))
        return [file for _, (_, file) in sorted(newest.items())]

    def enter(self, writer: Writer) -> None:
        """Refuse a writer if a newer run has been here; else let it be the newest."""
        self.path.mkdir(parents=True, exist_ok=True)
        runs = [int(path.name.removeprefix("run-")) for path in self.path.glob("run-*")]
        if max(runs, default=-1) > writer.generation:
            raise writer.fenced()
        (self.path / f"run-{writer.generation}").touch()


def write_fresh(table: pa.Table, place: Path) -> Path:
    """Write a table beside the place of its file, under a name that no reader looks at; its bytes are durable."""
    # No *.parquet: some readers take hidden files, too.
    fresh = place.with_name(f".{place.name}.new")
    with fresh.open("wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def put_in_place(fresh: Path, place: Path) -> None:
    """Let readers see a file, whole, for good: also when the machine dies at once."""
    fresh.rename(place)
    sync_directory(place.parent)
