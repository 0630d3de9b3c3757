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

from headrace.checkpoint.journal import COMMITS, entry
from headrace.core.errors import HeadraceError
from headrace.core.nearest import choices
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.log import Log
from headrace.log.errors import OffsetOutOfRange, UnknownTopic
from headrace.serve.http.problems import Problem
from headrace.serve.views.catalog import Catalog, ServedView
from headrace.serve.views.followed import Followed
from headrace.serve.views.memory import give_back
from headrace.serve.views.table import TableSnapshot

_PAUSE = 0.02
_AFTER_FAILURE = 1.0
_DISCOVER_EVERY = 1.0
_SAVE_EVERY = 2.0
_LARGE = 100_000
_log = logging.getLogger("headrace.serve")

Listener = Callable[[str], None]


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job, by its last committed epoch. `watermark` is in microseconds; None before the first epoch."""

    epoch: int = 0
    watermark: int | None = None


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

    def rows(self) -> dict[str, int]:
        """How many rows each view has that is ready."""
        return {followed.view.name: followed.table.rows for followed in self.views() if followed.ready}

    def snapshot(self, name: str) -> TableSnapshot:
        """A view's rows for SQL, whose names ignore case."""
        ready = [followed for followed in self.views() if followed.ready]
        for followed in ready:
            if followed.view.name.lower() == name.lower():
                return followed.table.snapshot()
        raise Problem(404, f"there is no view {name!r}", hint=choices(name, [followed.view.name for followed in ready], "views"))

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
        failed: Exception | None = None
        for app in {followed.view.app for followed in self._views.values()}:
            try:
                moved |= self._follow(app)
            except (HeadraceError, OSError) as error:
                # The views of other jobs move on.
                failed = error
        if now - self._saved_at >= _SAVE_EVERY:
            self._saved_at = now
            self._save()
        if failed is not None:
            raise failed
        return moved

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                moved = self.step()
            except Exception as error:  # noqa: BLE001 - without this thread, views would stand still for good, and nothing would say so
                _log.warning("views stand still: %s", error, exc_info=not isinstance(error, HeadraceError | OSError))
                self._stopped.wait(_AFTER_FAILURE)
                continue
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
                    self._views[name] = self._begun(view)
                except UnknownTopic:
                    continue

    def _follow(self, app: str) -> bool:
        place = JobDirectory(self._home, app)
        if not self._news(app, place):
            return False
        plan = _committed_plan(place)
        epoch = 0 if plan is None else plan.epoch
        moved = False
        for followed in [followed for followed in self._views.values() if followed.view.app == app]:
            if epoch < followed.table.epoch:
                # The job was reset or repaired: what was read is no longer valid.
                self._read_anew(followed)
                continue
            began = not followed.ready
            try:
                changed = followed.advance(lambda: _epoch(place))
            except OffsetOutOfRange:
                self._read_anew(followed)
                continue
            except OSError:
                # A part of an epoch may have been applied.
                self._read_anew(followed)
                raise
            if began and followed.table.rows >= _LARGE:
                give_back()
            if changed:
                moved = True
                self._listener(followed.view.name)
        self._jobs[app] = JobProgress(epoch, None if plan is None else plan.watermark)
        return moved

    def _news(self, app: str, place: JobDirectory) -> bool:
        """Whether a job may have committed something since the last look, or a view of it is not ready."""
        seen, before = _changed_at(place.checkpoint / COMMITS), self._seen.get(app)
        self._seen[app] = seen
        # Two commits within one tick of the file system's clock leave the same time.
        following = entry(place.checkpoint, COMMITS, self.progress(app).epoch)
        return seen != before or following.exists() or not all(view.ready for view in self._views.values() if view.view.app == app)

    def _read_anew(self, followed: Followed) -> None:
        """Follow a view from the beginning of its topic; readers wait until it is ready again."""
        followed.table.forget()
        name = followed.view.name
        try:
            self._views[name] = self._begun(followed.view)
        except UnknownTopic:
            del self._views[name]
        self._listener(name)

    def _begun(self, view: ServedView) -> Followed:
        return Followed(self._log, view, self._cache / view.name if self._cache is not None else None)

    def _save(self) -> None:
        for followed in self._views.values():
            if followed.ready:
                followed.table.save()
                followed.table.tidy()


def _committed_plan(place: JobDirectory) -> EpochPlan | None:
    try:
        return place.committed_plan()
    except FileNotFoundError:
        # A reset of the job removes its files one after another.
        return None


def _epoch(place: JobDirectory) -> int:
    plan = _committed_plan(place)
    return 0 if plan is None else plan.epoch


def _changed_at(directory: Path) -> int:
    """When an entry was last added to or removed from a directory."""
    try:
        return directory.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
