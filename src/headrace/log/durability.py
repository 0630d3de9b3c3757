"""Group commit: one sync makes every append durable that was written before it began, of all threads and processes.

Whoever finds nobody syncing syncs; the others wait for that one's end, and the first of them that is not served by it syncs next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from headrace.log.disk import File
from headrace.log.errors import RecordLost
from headrace.log.head import State
from headrace.log.write_end import WriteEnd


class Written(Protocol):
    """An append that was written, or found to be there already."""

    @property
    def next(self) -> int:
        """The offset behind it."""
        ...


_W = TypeVar("_W", bound=Written)
Write = Callable[[State], tuple[State, _W | None]]
"""Writes an append in a state, under the lock, and gives the state after it; None if it could not be written there."""


class Durability:
    """Makes what is written to the end of a partition durable.

    A sync happens outside of the partition's lock and under a lock of its own, which is taken before that one.
    """

    def __init__(self, end: WriteEnd) -> None:
        self._end = end
        self.lock = end.lock_named("sync")

    def append(self, write: Write[_W]) -> _W | None:
        """Let an append be written, and return when it is durable; None if it could not be written."""
        # While nobody syncs, the write and the beginning of its own sync are one turn under the partition's lock.
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
        """Return when everything before `offset`, written when `cuts` was so many, is durable: by a sync made here or by another one."""
        with self.lock:
            if self._settled(self._end.state(), offset, cuts):
                return
            with self._end.locked("sync") as found:
                begun = self._begin_for(found, offset, cuts)
            if begun is not None:
                self._settled(self._finish(*begun), offset, cuts)

    def synced(self, state: State) -> State:
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
        """Take the lock of syncs, unless somebody has it."""
        try:
            return self.lock.acquire(wait=False)
        except OSError as error:
            raise self._end.failure("append", error) from error

    def _finish(self, state: State, file: File) -> State:
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

    def _settled(self, state: State, offset: int, cuts: int) -> bool:
        """Whether everything before `offset` is durable."""
        # After a cut its offsets may belong to another append, so only a retry, found by its sequence, can tell.
        if state.cuts != cuts:
            raise RecordLost(
                f"an append to {self._end.directory} before offset {offset} may have been cut off before it was durable",
                hint="send it again: if it is there, it is not stored twice",
            )
        return state.durable >= offset

    # Below: called under both locks.

    def _begin(self, state: State) -> State:
        """Note that a sync is under way; after one that ended badly, what it was to make durable is written again first."""
        if state.syncing:
            state = self._end.active.write_again(state)
        state = state._replace(syncing=1)
        self._end.head.store(state)
        self._end.follow(state).learn(state)
        return state

    def _begin_for(self, state: State, offset: int, cuts: int) -> tuple[State, File] | None:
        """The same for what was written before `offset`, with the file to sync; None if that is durable already."""
        if self._settled(state, offset, cuts):
            return None
        state = self._begin(state)
        self._settled(state, offset, cuts)
        return state, self._end.active.file

    def _forget_unsynced(self, state: State) -> None:
        state = self._end.active.forget_unsynced(state)
        self._end.head.store(state)
        self._end.follow(state).learn(state)
