"""Maintenance of a log: on request, and after each closed segment, in the background of the process that closed it.

One process at a time works on a partition. No append waits for longer than it takes to write a few words.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from headrace.core.errors import LogError
from headrace.log.errors import DiskFailed, TopicDeleted
from headrace.log.files.cursor import Outcomes
from headrace.log.files.partition import Partition
from headrace.log.files.segment import INDEX_SUFFIX, MERGING, SUFFIX, WRITERS_SUFFIX
from headrace.log.files.segment_writer import ASIDE
from headrace.log.upkeep.compaction import Compacted, Compaction
from headrace.log.upkeep.holds import Holds
from headrace.log.upkeep.retention import LEARNED_SUFFIX, Removed, apply_retention, remove_segment

DIRTY_RATIO = 0.5
LOCK = "maintenance"
_EXIT_WAIT = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartitionReport:
    """The result of maintenance for one partition; `compacted` is None if it was not due, `error` says why it failed."""

    topic: str
    partition: int
    removed: Removed | None = None
    compacted: Compacted | None = None
    error: LogError | None = None
    held_by: str | None = None
    """The job that may read records again, and so keeps them from being compacted from its position on."""


class Maintenance:
    """Retention and compaction for the partitions of one log."""

    def __init__(self, outcomes: Callable[[], Outcomes], holds: Holds) -> None:
        self._make_outcomes = outcomes
        self._holds = holds
        self._pending: dict[tuple[str, int], Partition] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = 0
        self.failures = 0
        """How often background work failed; each time a warning was logged, and the next closed segment is another try."""

    def run(self, partition: Partition, *, force: bool = False) -> PartitionReport:
        """Apply retention, and compaction if enough is new since the last one, or at once with `force`."""
        try:
            with maintenance_lock(partition):
                return self._work(partition, force=force)
        except OSError as error:
            # A topic that was deleted meanwhile has no files any more.
            partition.state()
            raise DiskFailed(
                f"maintenance of {partition.directory} failed: {error.strerror}",
                why="data that was to be kept is untouched",
                hint="free space or replace the disk, then try again",
            ) from error

    def soon(self, partition: Partition) -> None:
        """Schedule maintenance of a partition in the background; called when a segment was closed."""
        config = partition.topic.config
        if not config.compacted and config.retention_ms < 0 and config.retention_bytes < 0:
            return
        with self._guard:
            if self._process != os.getpid():
                # A forked child has the waiting list, but not the thread.
                self._process, self._thread = os.getpid(), None
                self._pending.clear()
                atexit.register(_finish, weakref.ref(self))
            self._pending[partition.topic.id, partition.index] = partition
            if self._thread is None:
                self._thread = threading.Thread(target=self._drain, name="headrace-maintenance", daemon=True)
                self._thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the background has nothing to do."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def close(self) -> None:
        """Stop the background after the present partition; the rest is due again when another segment is closed."""
        with self._guard:
            self._pending.clear()
        self.wait()

    def _drain(self) -> None:
        while True:
            with self._guard:
                if not self._pending:
                    self._thread = None
                    return
                partition = self._pending.pop(next(iter(self._pending)))
            try:
                self.run(partition)
            except TopicDeleted:
                continue
            except (LogError, pa.ArrowException) as error:
                self.failures += 1
                _log.warning("maintenance of partition %d of topic %r failed: %s", partition.index, partition.topic.name, error)

    def _work(self, partition: Partition, *, force: bool) -> PartitionReport:
        tidy(partition)
        removed = apply_retention(partition)
        compacted = held = None
        if partition.topic.config.compacted:
            held = self._holds.floor(partition)
            compaction = Compaction(partition, self._make_outcomes(), until=None if held is None else held[0])
            if force or compaction.dirty_ratio >= DIRTY_RATIO:
                compacted = compaction.run()
        return PartitionReport(partition.topic.name, partition.index, removed, compacted, held_by=None if held is None else held[1])


@contextmanager
def maintenance_lock(partition: Partition) -> Iterator[None]:
    """Keep every other process from changing the segments of a partition; appends and reads continue."""
    with partition.disk.lock(partition.directory / LOCK):
        yield


def tidy(partition: Partition) -> None:
    """Remove the leftovers of a maintenance that crashed. Called under the maintenance lock."""
    disk, directory = partition.disk, partition.directory
    state = partition.state()
    counted = partition.segments(state)
    names = disk.list(directory)
    for name in names:
        if name.startswith(ASIDE):
            disk.remove(directory / name)
    # Files of later segments are left alone: a writer may be about to create one.
    present = {
        int(name.split(".")[0])
        for name in names
        if name.endswith((SUFFIX, INDEX_SUFFIX, WRITERS_SUFFIX, LEARNED_SUFFIX)) and name[0] != "."
    }
    for base in sorted(present - set(counted)):
        if base < state.segment:
            remove_segment(partition, base)
    if MERGING in names:
        disk.sync_directory(directory)
        disk.remove(directory / MERGING)


def _finish(reference: weakref.ref[Maintenance]) -> None:
    """Give work under way a moment to end with the process; if it is cut off, the next process does it."""
    maintenance = reference()
    if maintenance is not None:
        maintenance.wait(_EXIT_WAIT)
