"""The thread that keeps views in step with their topics: whole committed epochs, never a part of one.

A job writes an epoch's rows before Spark commits the epoch. Rows of an uncommitted epoch wait here, so that no reader sees half of an
epoch, or one that a repair undoes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from headrace.checkpoint.journal import COMMITS
from headrace.core.errors import HeadraceError
from headrace.jobs.directory import JobDirectory
from headrace.log import Log
from headrace.log.errors import OffsetOutOfRange, UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.serve.views.catalog import Catalog, ServedView
from headrace.serve.views.memory import give_back
from headrace.serve.views.table import OFFSET, PARTITION, SEQUENCE, TOMBSTONE, TableSnapshot, ViewTable

_PAUSE = 0.02
_DISCOVER_EVERY = 1.0
_SAVE_EVERY = 2.0
_LARGE = 100_000
_CHUNK = ReadLimits(rows=1_000_000, bytes=256 * 1024 * 1024)
_log = logging.getLogger("headrace.serve")

Listener = Callable[[str], None]


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job, by its last committed epoch. `watermark` is in microseconds; None before the first epoch."""

    epoch: int = 0
    watermark: int | None = None


class Followed:
    """One view being followed: its table, the cursors on its topic, and records of uncommitted epochs."""

    def __init__(self, log: Log, view: ServedView, cache: Path | None) -> None:
        self.view = view
        self._log = log
        self._topic = log.topic(view.topic)
        self.table = ViewTable(view, self._topic.id, cache)
        self.ready = False
        self._names = (*view.columns.names, PARTITION, OFFSET, TOMBSTONE, SEQUENCE)
        self._cursors: dict[int, Cursor] = {}
        self._waiting: dict[int, list[pa.RecordBatch]] = {}

    def replaced(self) -> bool:
        """Whether the topic was deleted or created again since."""
        try:
            return self._log.topic(self.view.topic).id != self.table.topic_id
        except UnknownTopic:
            return True

    def advance(self, epoch: int) -> bool:
        """Apply everything up to a committed epoch; True if the view has moved."""
        if epoch == self.table.epoch and self.ready:
            return False
        while True:
            more = self._read()
            ready, positions = self._committed(epoch)
            if more:
                # The table is read for the first time, or is far behind: it is read in parts that fit into memory.
                self.table.apply(ready, self.table.epoch, positions, first=True)
                continue
            self.table.apply(ready, epoch, positions, first=not self.ready)
            self.ready = True
            return True

    def _read(self) -> bool:
        """Read the topic; True if there is more than one chunk of it."""
        full = False
        for partition in range(self._log.topic(self.view.topic).partitions):
            batches = self._cursor(partition).read(_CHUNK, self._names)
            self._waiting.setdefault(partition, []).extend(batches)
            full = full or sum(batch.num_rows for batch in batches) >= _CHUNK.rows
        return full

    def _cursor(self, partition: int) -> Cursor:
        if partition not in self._cursors:
            place = self._log.partition(self._log.topic(self.view.topic), partition)
            start = max(self.table.positions.get(partition, 0), place.state().start)
            self._cursors[partition] = Cursor(place, start, outcomes=self._log.transactions)
        return self._cursors[partition]

    def _committed(self, epoch: int) -> tuple[pl.DataFrame, dict[int, int]]:
        """The records of committed epochs, which wait no longer, and the next offset of each partition."""
        taken: list[pa.RecordBatch] = []
        positions = dict(self.table.positions)
        for partition, batches in self._waiting.items():
            count = next((number for number, batch in enumerate(batches) if _sequence(batch) > epoch), len(batches))
            taken += batches[:count]
            self._waiting[partition] = batches[count:]
            behind = _offset(batches[count]) if count < len(batches) else self._cursors[partition].offset
            positions[partition] = behind
        if not taken:
            places = [(PARTITION, pa.int32()), (OFFSET, pa.int64()), (TOMBSTONE, pa.bool_()), (SEQUENCE, pa.int64())]
            return _frame(pa.schema([*self.view.columns, *places]).empty_table()), positions
        return _frame(pa.Table.from_batches(taken)), positions


class Follower:
    """Keeps every view of a home in memory. `listener` is called with the name of a view that has moved, or of a job with news."""

    def __init__(self, log: Log, home: Path, cache: Path | None, listener: Listener = lambda name: None) -> None:
        self._log, self._home, self._cache = log, home, cache
        self._listener = listener
        self._catalog = Catalog(home)
        self._views: dict[str, Followed] = {}
        self._jobs: dict[str, JobProgress] = {}
        self._seen: dict[str, int] = {}
        self._stopped = threading.Event()
        self._discovered = False
        self._discovered_at = self._saved_at = 0.0
        self._thread = threading.Thread(target=self._run, name="headrace-follower", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and save the place of each view."""
        self._stopped.set()
        self._thread.join()
        self._save()

    def view(self, name: str) -> Followed | None:
        return self._views.get(name)

    def views(self) -> list[Followed]:
        return sorted(self._views.values(), key=lambda followed: followed.view.name)

    def snapshot(self, name: str) -> TableSnapshot | None:
        """A view's rows for SQL, whose names ignore case; None if there is none."""
        for followed in self.views():
            if followed.view.name.lower() == name.lower() and followed.ready:
                return followed.table.snapshot()
        return None

    def progress(self, app: str) -> JobProgress:
        return self._jobs.get(app, JobProgress())

    @property
    def discovered(self) -> bool:
        """Whether the jobs of the home have been looked for."""
        return self._discovered

    @property
    def ready(self) -> bool:
        """Whether every known view has been read up to its job's last epoch."""
        return self._discovered and all(followed.ready for followed in self._views.values())

    def step(self) -> bool:
        """Look once at every job and view; True if something moved."""
        now = time.monotonic()
        if now - self._discovered_at >= _DISCOVER_EVERY:
            self._discover()
            self._discovered_at, self._discovered = now, True
        moved = False
        for app in {followed.view.app for followed in self._views.values()}:
            moved |= self._follow(app)
        if now - self._saved_at >= _SAVE_EVERY:
            self._save()
            self._saved_at = now
        return moved

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                moved = self.step()
            except HeadraceError as error:
                _log.warning("views stand still: %s", error)
                moved = False
            if not moved:
                self._stopped.wait(_PAUSE)

    def _discover(self) -> None:
        found = {view.name: view for view in self._catalog.views()}
        for name, followed in list(self._views.items()):
            if found.get(name) != followed.view or followed.replaced():
                del self._views[name]
                self._listener(name)
        for name, view in found.items():
            if name not in self._views:
                try:
                    self._views[name] = Followed(self._log, view, self._cache / name if self._cache is not None else None)
                except UnknownTopic:
                    continue

    def _follow(self, app: str) -> bool:
        place = JobDirectory(self._home, app)
        seen = _changed_at(place.checkpoint / COMMITS)
        if seen == self._seen.get(app) and all(followed.ready for followed in self._views.values() if followed.view.app == app):
            return False
        self._seen[app] = seen
        plan = place.committed_plan()
        epoch = 0 if plan is None else plan.epoch
        moved = False
        for name, followed in list(self._views.items()):
            if followed.view.app != app:
                continue
            if epoch < followed.table.epoch:
                # The job was reset or repaired: what was read is no longer valid.
                followed.table.forget()
                del self._views[name]
                self._listener(name)
                self._discovered_at = 0.0
                continue
            began = not followed.ready
            try:
                changed = followed.advance(epoch)
            except OffsetOutOfRange:
                followed.table.forget()
                del self._views[name]
                self._discovered_at = 0.0
                continue
            if began and followed.table.rows >= _LARGE:
                give_back()
            if changed:
                moved = True
                self._listener(name)
        self._jobs[app] = JobProgress(epoch, None if plan is None else plan.watermark)
        return moved

    def _save(self) -> None:
        for followed in self._views.values():
            if followed.ready:
                followed.table.save()


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _changed_at(directory: Path) -> int:
    """When an entry was last added to or removed from a directory."""
    try:
        return directory.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _sequence(batch: pa.RecordBatch) -> int:
    return int(batch.column(SEQUENCE)[0].as_py())


def _offset(batch: pa.RecordBatch) -> int:
    return int(batch.column(OFFSET)[0].as_py())
