"""Group commit: one sync makes durable every append that was written before it began, of all threads and processes.

A thread that finds no sync under way syncs. The others wait for its end; the first one that it did not cover syncs next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from headrace.core.files.disk import File
from headrace.log.errors import RecordLost
from headrace.log.files.head import PartitionState
from headrace.log.files.write_end import WriteEnd


class WrittenAppend(Protocol):
    """An append that was written, or found to be stored already."""

    @property
    def next(self) -> int:
        """The offset after it."""
        ...


_W = TypeVar("_W", bound=WrittenAppend)
Write = Callable[[PartitionState], tuple[PartitionState, _W | None]]
"""Writes an append in a state, under the lock, and gives the state after it; None if it could not be written there."""


class Durability:
    """Makes the end of a partition durable.

    A sync runs outside of the partition's lock and under a lock of its own, which is always taken first.
    """

    def __init__(self, end: WriteEnd) -> None:
        self._end = end
        self.lock = end.lock_named("sync")

    def append(self, write: Write[_W]) -> _W | None:
        """Write an append, and return when it is durable; None if it could not be written."""
        # While no sync is under way, the write and the start of its own sync are one step under the partition's lock.
        alone = self._lock_taken()
        try:
            with self._end.locked("append") as state:
                after, written = write(state)
                begun = self._begin_for(after, written.next, after.cuts) if alone and written is not None else None
            now = self._finish(*begun) if begun is not None else None
        finally:
            if alone:
                self.lock.release()
        if written is not None and not self._settled(now or self._end.state(), written.next, after.cuts):
            self.wait(written.next, after.cuts)
        return written

    def sync(self) -> None:
        """Make everything written so far durable, and visible."""
        with self._end.locked("sync") as state:
            pass
        if state.durable < state.written:
            self.wait(state.written, state.cuts)

    def wait(self, offset: int, cuts: int) -> None:
        """Return when everything before `offset`, written at the cut count `cuts`, is durable: by a sync made here or by another one."""
        with self.lock:
            if self._settled(self._end.state(), offset, cuts):
                return
            with self._end.locked("sync") as found:
                begun = self._begin_for(found, offset, cuts)
            if begun is not None:
                self._settled(self._finish(*begun), offset, cuts)

    def synced(self, state: PartitionState) -> PartitionState:
        """The state with everything written made durable; called under both locks."""
        if state.durable_position == state.position:
            return state
        state = self._begin(state)
        try:
            self._end.active.file.sync()
        except OSError:
            self._forget_unsynced(state)
            raise
        state = state.synced(state)
        self._end.head.store(state)
        return state

    def _lock_taken(self) -> bool:
        """Take the lock of syncs, unless another process holds it."""
        try:
            return self.lock.acquire(wait=False)
        except OSError as error:
            raise self._end.failure("append", error) from error

    def _finish(self, state: PartitionState, file: File) -> PartitionState:
        """Sync what was written in `state`, under the lock of syncs alone, and publish that it is durable."""
        try:
            file.sync()
        except OSError as error:
            with self._end.locked("sync") as now:
                if now.segment == state.segment and now.syncing:
                    self._forget_unsynced(now)
            raise self._end.failure("sync", error) from error
        with self._end.locked("sync") as found:
            same = found.segment == state.segment and found.cuts == state.cuts
            now = found.synced(state) if same else found
            self._end.head.store(now)
        return now

    def _settled(self, state: PartitionState, offset: int, cuts: int) -> bool:
        """Whether everything before `offset` is durable."""
        # After a cut, its offsets may belong to another append: only a retry, found by its sequence, can tell.
        if state.cuts != cuts:
            raise RecordLost(
                f"an append to {self._end.directory} before offset {offset} may have been cut off before it was durable",
                hint="send it again: if it is stored, it is not stored twice",
            )
        return state.durable >= offset

    # Below: called under both locks.

    def _begin(self, state: PartitionState) -> PartitionState:
        """Record that a sync is under way; after a failed one, write its data again first."""
        if state.syncing:
            state = self._end.active.write_again(state)
        state = state._replace(syncing=1)
        self._end.head.store(state)
        self._end.follow(state).learn(state)
        return state

    def _begin_for(self, state: PartitionState, offset: int, cuts: int) -> tuple[PartitionState, File] | None:
        """The same for what was written before `offset`, with the file to sync; None if that is already durable."""
        if self._settled(state, offset, cuts):
            return None
        state = self._begin(state)
        self._settled(state, offset, cuts)
        return state, self._end.active.file

    def _forget_unsynced(self, state: PartitionState) -> None:
        state = self._end.active.forget_unsynced(state)
        self._end.head.store(state)
        self._end.follow(state).learn(state)
