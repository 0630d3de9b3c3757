"""The end of a partition, where it is written: the lock, the state that all processes see, and the files that this one has open there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core.clock import Clock
from headrace.core.errors import LogError
from headrace.log import head as heads
from headrace.log.active import ActiveSegment
from headrace.log.checksum import checksum
from headrace.log.disk import Disk, Lock
from headrace.log.errors import DiskFailed, TopicDeleted, closed_log
from headrace.log.head import Head, State
from headrace.log.recovery import recover

_log = logging.getLogger(__name__)


class WriteEnd:
    """Shared by threads and, through its files, by processes. `topic` is the name that errors say.

    What is open here is used under the lock only. `on_open` is called, under the lock, when files were opened.
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

    def state(self) -> State:
        """A consistent picture of the partition, recovered first if the last writer or the machine died."""
        state = self.head.load() if self._opened and not self._closed else None
        if state is None or state.boot != self._boot:
            with self.locked("opening") as state:
                self._opened = True
        if state.deleted:
            raise self.deleted()
        return state

    @contextmanager
    def locked(self, what: str) -> Iterator[State]:
        """Hold the lock; gives the state, with the files of this process in step with it. `what` names the work if the disk fails."""
        try:
            with self.lock:
                yield self._fresh()
        except OSError as error:
            raise self.failure(what, error) from error

    def rest(self) -> bool:
        """Close the files until they are next needed, unless they are in use or something is not durable; whether they are closed.

        An error of the disk is told to the files that were open when it happened, so those with unsynced appends stay.
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
        """The error to raise for one of the disk."""
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
        """The segment that takes appends."""
        assert self._active is not None
        return self._active

    def follow(self, state: State) -> ActiveSegment:
        """Open the segment that takes appends in this state, if another one is open or what was learned from it was taken back."""
        # The files before are not closed by hand: another thread may be syncing one, and its number must not be given away.
        if self._active is None or not self._active.fits(state):
            self._active = ActiveSegment(self._disk, self.directory, state)
            if self.on_open is not None:
                self.on_open()
        return self._active

    def recovered(self, stale: State | None) -> State:
        """The state as the files tell it; `stale` is the last one that was known."""
        state = recover(self._disk, self.directory, self._boot, stale, self._clock.now())
        self.head.store(state)
        return state

    def cut(self, state: State) -> State:
        """Remove bytes behind the end, of a write that failed or whose process died; nothing is written over them before."""
        try:
            self.active.cut(state)
        except OSError:
            # What the failed sync was to write may count as clean now.
            self.head.store(state._replace(syncing=1, ragged=1))
            raise
        state = state._replace(ragged=0)
        self.head.store(state)
        return state

    def _fresh(self) -> State:
        """The state, with the files this process has open brought in step with what other processes did."""
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
