"""The write end of a partition: the lock, the state that all processes see, and the files that this process has open."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core.clock import Clock
from headrace.core.errors import LogError
from headrace.core.files.disk import Disk, Lock
from headrace.log.errors import DiskFailed, TopicDeleted, closed_log
from headrace.log.files import head as heads
from headrace.log.files.active import ActiveSegment
from headrace.log.files.checksum import checksum
from headrace.log.files.head import Head, PartitionState
from headrace.log.files.recovery import recover

_log = logging.getLogger(__name__)


class WriteEnd:
    """Shared by threads and, through its files, by processes. `topic` is the name that errors show.

    Open files are used under the lock only. `on_open` is called, under the lock, when files were opened.
    """

    def __init__(self, disk: Disk, directory: Path, topic: str, clock: Clock) -> None:
        self._disk = disk
        self.directory = directory
        self._topic = topic
        self._clock = clock
        self.lock = self.lock_named("lock")
        try:
            self.head = Head(disk.shared(directory / "head", heads.SIZE))
        except OSError as error:
            raise self.failure("opening", error) from error
        self._boot = checksum(disk.boot().encode()) + 1
        self._active: ActiveSegment | None = None
        self._opened = self._closed = False
        self.on_open: Callable[[], None] | None = None

    def lock_named(self, name: str) -> Lock:
        """A lock in the partition's directory."""
        try:
            return self._disk.lock(self.directory / name)
        except OSError as error:
            raise self.failure("opening", error) from error

    def state(self) -> PartitionState:
        """A consistent state of the partition, recovered first if the last writer or the machine died."""
        state = self.head.load() if self._opened and not self._closed else None
        if state is None or state.boot != self._boot:
            with self.locked("opening") as state:
                self._opened = True
        if state.deleted:
            raise self.deleted()
        return state

    @contextmanager
    def locked(self, what: str) -> Iterator[PartitionState]:
        """Hold the lock; yields the state, with the files of this process in step with it. `what` names the work if the disk fails."""
        try:
            with self.lock:
                yield self._fresh()
        except OSError as error:
            raise self.failure(what, error) from error

    def rest(self) -> bool:
        """Close the files until they are next needed, unless they are in use or something is not durable; returns whether they are closed.

        The system reports a disk error to the files that were open when it happened, so those with unsynced appends stay open.
        """
        if not self.lock.acquire(wait=False):
            return False
        try:
            state = self.head.load(locked=True)
            if state is None or state.durable == state.written:
                self._active = None
        finally:
            self.lock.release()
        if self._active is None:
            self.lock.rest()
        return self._active is None

    def close(self) -> None:
        """Close the files for good."""
        with self.lock:
            self._closed = True
            self._active = None
        self.lock.rest()

    def failure(self, what: str, error: OSError) -> LogError:
        """The error to raise for a disk error."""
        if not self._disk.exists(self.directory):
            return self.deleted()
        return DiskFailed(
            f"{what} of {self.directory} failed: {error.strerror}",
            why="nothing of it is acknowledged",
            hint="free space or replace the disk, then send again",
        )

    def deleted(self) -> TopicDeleted:
        return TopicDeleted(f"topic {self._topic!r} was deleted", hint="create it again, or stop using it")

    # Below: called under the lock.

    @property
    def active(self) -> ActiveSegment:
        """The active segment."""
        assert self._active is not None
        return self._active

    def follow(self, state: PartitionState) -> ActiveSegment:
        """Open the active segment of this state, if another one is open or what was read from it has been cut off."""
        # The previous files are not closed here: another thread may be syncing one, and its descriptor number must not be reused.
        if self._active is None or not self._active.fits(state):
            self._active = ActiveSegment(self._disk, self.directory, state)
            if self.on_open is not None:
                self.on_open()
        return self._active

    def recovered(self, stale: PartitionState | None) -> PartitionState:
        """The state according to the files; `stale` is the last known one."""
        state = recover(self._disk, self.directory, self._boot, stale, self._clock.now())
        self.head.store(state)
        return state

    def cut(self, state: PartitionState) -> PartitionState:
        """Remove bytes after the end, from a write that failed or whose process died, before anything is written over them."""
        try:
            self.active.cut(state)
        except OSError:
            # The data of the failed sync may count as clean now.
            self.head.store(state._replace(syncing=1, ragged=1))
            raise
        state = state._replace(ragged=0)
        self.head.store(state)
        return state

    def _fresh(self) -> PartitionState:
        """The state, with the open files of this process brought in step with the changes of other processes."""
        if self._closed:
            raise closed_log(self._topic)
        state = self.head.load(locked=True)
        if state is None or state.boot != self._boot or state.rolling:
            state = self.recovered(state)
        if state.deleted:
            raise self.deleted()
        active = self.follow(state)
        size = active.segment.size
        if size < state.position:
            _log.error("%s: ends at %d, not at %d where it was written to", active.segment.path, size, state.position)
            state = self.recovered(state)
            active = self.follow(state)
        elif size > state.position or state.ragged:
            # A writer died between its write and the head, or its write failed: the rest was never acknowledged.
            state = self.cut(state)
        active.learn(state)
        return state
