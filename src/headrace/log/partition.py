"""One partition: appends from any process, one order, durable when acknowledged.

An append assigns offsets and writes under the partition's lock; the sync that makes it durable happens outside of it, and
one sync serves every append written before it began (group commit, also between processes). Readers see what is visible:
durable appends, and those written with acks="1".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.core.clock import Clock
from headrace.core.errors import LogError
from headrace.log import frame as frames
from headrace.log import head as heads
from headrace.log.active import ActiveSegment, Body
from headrace.log.bell import Watch
from headrace.log.checksum import checksum
from headrace.log.disk import Disk, File
from headrace.log.errors import DiskFailed, RecordLost, TopicDeleted, closed_log
from headrace.log.head import Head, State
from headrace.log.layout import Layout, Stored
from headrace.log.mark import RESERVED, START, store_mark
from headrace.log.recovery import recover
from headrace.log.segment import MERGING, WRITERS_SUFFIX, Segment, Start, segment_bases, segment_path, without_merged
from headrace.log.topic import Topic
from headrace.log.writers import Author, Last

_log = logging.getLogger(__name__)
# How many offsets may be seen before they are durable until that is noted again: as many as there are, within these bounds.
_FEWEST_RESERVED, _MOST_RESERVED = 4096, 1 << 24


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an append went. `repeated`: it was there already, and was not stored again."""

    partition: int
    base: int
    next: int
    repeated: bool = False


class Partition:
    """The records of one partition of a topic, in their order. Threads may share it.

    Locks are taken in the order sync lock, lock. The files that this process has open are used under the lock only.
    """

    def __init__(self, disk: Disk, directory: Path, topic: Topic, index: int, clock: Clock) -> None:
        self.index = index
        self.topic = topic
        self.directory = directory
        self.disk = disk
        self.clock = clock
        self.layout = Layout(topic)
        try:
            self._lock = disk.lock(directory / "lock")
            self._sync_lock = disk.lock(directory / "sync")
            self._head = Head(disk.shared(directory / "head", heads.SIZE))
        except OSError as error:
            raise self._failure("opening", error) from error
        self._boot = checksum(disk.boot().encode()) + 1
        self._active: ActiveSegment | None = None
        self._opened = self._closed = False
        self.on_roll: Callable[[Partition], None] | None = None
        self.on_open: Callable[[Partition], None] | None = None

    @staticmethod
    def create(disk: Disk, directory: Path, topic: Topic) -> None:
        """The files of a new, empty partition."""
        disk.make_directory(directory)
        Segment.create(disk, directory, Start(0, 0, 0, topic.columns, frames.NO_TIME))

    def state(self) -> State:
        """A consistent picture of the partition, recovered first if the last writer or the machine died."""
        state = self._head.load() if self._opened and not self._closed else None
        if state is None or state.boot != self._boot:
            with self._locked("opening") as state:
                self._opened = True
        if state.deleted:
            raise self._deleted()
        return state

    def watch(self) -> Watch:
        """What changes with every append that readers can see."""
        return self._head.watch()

    def append(self, batches: Sequence[Stored], author: Author, *, durable: bool) -> Appended:
        """Store batches as one append: after a crash all of them are there, or none.

        An append that its writer has made before is found and not repeated.
        """
        codec = frames.CODECS.index(None if self.topic.config.compression_type == "none" else self.topic.config.compression_type)
        bodies = [Body(stored, codec, *frames.encode(stored.batch, codec)) for stored in batches]
        # While nobody syncs, the write and the beginning of its own sync are one turn under the lock.
        alone = durable and self._sync_lock_taken()
        try:
            with self._locked("append") as state:
                after, done = self._appended(state, bodies, author, visible=not durable)
                begun = self._begin_own_sync(after, done.next, state.cuts) if alone and done is not None else None
            if begun is not None:
                self._finish_sync(*begun)
        finally:
            if alone:
                self._sync_lock.release()
        if done is None:
            # A segment is closed under both locks: a sync of it that is under way must have its say first.
            with self._sync_lock, self._locked("append") as found:
                state = self._with_room(found, bodies)
                _, done = self._appended(state, bodies, author, visible=not durable)
            if self.on_roll is not None:
                self.on_roll(self)
        assert done is not None
        if durable and not self._settled(self.state(), done.next, state.cuts):
            self._make_durable(done.next, state.cuts)
        return done

    def sync(self) -> None:
        """Make everything written so far durable, and visible."""
        with self._locked("sync") as state:
            pass
        if state.durable < state.written:
            self._make_durable(state.written, state.cuts)

    def last_sequence(self, writer: int) -> int | None:
        """The sequence, or epoch, of the last append of a writer; None if it has none here."""
        with self._locked("opening"):
            assert self._active is not None
            last = self._active.writers.get(writer)
        return last.sequence if last else None

    def mark_deleted(self) -> None:
        """Let every user of the partition find that its topic was deleted."""
        with suppress(TopicDeleted), self._locked("deletion") as state:
            self._head.store(state._replace(deleted=1))

    def raise_start(self, offset: int) -> None:
        """Move the first readable offset up, durably; what is below may be removed."""
        with self._locked("change") as state:
            start = min(offset, state.visible)
            if start > state.start:
                store_mark(self.disk, self.directory / START, start)
                self._head.store(state._replace(start=start, layout=state.layout + 1))

    def rest(self) -> None:
        """Give the descriptors of this process back until they are next needed, unless they are in use or something is not durable.

        An error of the disk is told to the files that were open when it happened, so those with unsynced appends stay.
        """
        if self._lock.acquire(wait=False):
            try:
                state = self._head.load(locked=True)
                if state is None or state.durable == state.written:
                    self._active = None
            finally:
                self._lock.release()
            if self._active is None:
                self._lock.rest()
                self._sync_lock.rest()

    def close(self) -> None:
        """Give everything back; appends that are under way end first."""
        with self._sync_lock, self._lock:
            self._closed = True
            self._active = None
        self._lock.rest()
        self._sync_lock.rest()

    @contextmanager
    def exclusive(self) -> Iterator[tuple[State, Head]]:
        """Hold the partition's lock, to change its set of segments; gives the state, takes the new one."""
        with self._locked("change") as state:
            yield state, self._head

    def mend(self, change: Callable[[State | None], State | None]) -> None:
        """Change files that are damaged, whatever state they are in; `change` gets the last known state, and gives what still holds."""
        try:
            with self._sync_lock, self._lock:
                stale = self._head.load(locked=True)
                if stale is not None and stale.deleted:
                    raise self._deleted()
                self._recovered(change(stale))
        except OSError as error:
            raise self._failure("repair", error) from error

    def segments(self, state: State) -> list[int]:
        """The base offsets of all segments, the active one last."""
        names = self.disk.list(self.directory)
        bases = [base for base in segment_bases(names) if base <= state.segment]
        return without_merged(self.disk, self.directory, bases) if MERGING in names else bases

    def roll(self) -> None:
        """Close the active segment, so that retention and compaction may work on it."""
        with self._sync_lock, self._locked("closing a segment") as state:
            if state.entries:
                self._roll(state)
        if state.entries and self.on_roll is not None:
            self.on_roll(self)

    @contextmanager
    def _locked(self, what: str) -> Iterator[State]:
        """Hold the lock; gives the state, with the files of this process in step with it."""
        try:
            with self._lock:
                yield self._fresh()
        except OSError as error:
            raise self._failure(what, error) from error

    # Below: called under the lock.

    def _fresh(self) -> State:
        """The state, with the files this process has open brought in step with what other processes did."""
        if self._closed:
            raise closed_log(self.topic.name)
        state = self._head.load(locked=True)
        if state is None or state.boot != self._boot or state.rolling:
            state = self._recovered(state)
        if state.deleted:
            raise self._deleted()
        active = self._opened_for(state)
        size = active.segment.size
        if size < state.position:
            _log.error("%s: ends at %d, not at %d where it was written to", active.segment.path, size, state.position)
            state = self._recovered(state)
            active = self._opened_for(state)
        elif size > state.position or state.ragged:
            # A writer died between its write and the head, or its write failed: the rest was never acknowledged.
            state = self._cut(state)
        active.learn(state)
        return state

    def _recovered(self, stale: State | None) -> State:
        state = recover(self.disk, self.directory, self._boot, stale, self.clock.now())
        self._head.store(state)
        return state

    def _cut(self, state: State) -> State:
        """Remove bytes behind the end, of a write that failed or whose process died; nothing is written over them before."""
        assert self._active is not None
        try:
            self._active.cut(state)
        except OSError:
            # What the failed sync was to write may count as clean now.
            self._head.store(state._replace(syncing=1, ragged=1))
            raise
        state = state._replace(ragged=0)
        self._head.store(state)
        return state

    def _opened_for(self, state: State) -> ActiveSegment:
        # The files before are not closed by hand: another thread may be syncing one, and its number must not be given away.
        if self._active is None or not self._active.fits(state):
            self._active = ActiveSegment(self.disk, self.directory, state)
            if self.on_open is not None:
                self.on_open(self)
        return self._active

    def _appended(self, state: State, bodies: Sequence[Body], author: Author, *, visible: bool) -> tuple[State, Appended | None]:
        """Write an append, or find that it was made before; None if the segment has no room for it."""
        assert self._active is not None
        made = self._active.writers.made(author)
        if made is not None:
            return state, Appended(self.index, made.base, made.next, repeated=True)
        if not self._has_room(state, bodies):
            return state, None
        if visible:
            state = self._reserved(state, sum(body.stored.batch.num_rows for body in bodies))
        now = self.clock.now()
        try:
            after = self._active.write(state, bodies, author, now)
        except OSError:
            with suppress(OSError):
                self._cut(state)
            raise
        if visible:
            after = after.shown()
        self._head.store(after)
        last = Last(author.generation, author.sequence, state.written, after.written, now)
        self._active.remember(after, author.writer, last, max(body.stored.max_time for body in bodies))
        return after, Appended(self.index, state.written, after.written)

    def _reserved(self, state: State, count: int) -> State:
        """Note durably that offsets of the next `count` records may be seen before the records are durable."""
        written = state.written + count
        if written <= state.reserved:
            return state
        reserved = written + min(max(written, _FEWEST_RESERVED), _MOST_RESERVED)
        store_mark(self.disk, self.directory / RESERVED, reserved)
        return state._replace(reserved=reserved)

    # Below: called under both locks.

    def _has_room(self, state: State, bodies: Sequence[Body]) -> bool:
        assert self._active is not None
        full = state.entries > 0 and state.position + sum(body.size for body in bodies) > self.topic.config.segment_bytes
        return not full and bool(self._active.segment.columns.equals(self.topic.columns))

    def _with_room(self, state: State, bodies: Sequence[Body]) -> State:
        return state if self._has_room(state, bodies) else self._roll(state)

    def _roll(self, state: State) -> State:
        """Close the active segment and begin a new one."""
        assert self._active is not None
        state = self._synced(state)
        self._active.close_index(state)
        self._head.store(state._replace(rolling=1))
        path = segment_path(self.directory, state.written)
        try:
            self.disk.replace(path.with_suffix(WRITERS_SUFFIX), self._active.writers.pack(self.clock.now()))
            start = self._active.following(state.written, self.topic.columns)
            segment = Segment.create(self.disk, self.directory, start)
        except OSError:
            if not self.disk.exists(path):
                self._head.store(state)
            raise
        state = state.rolled(segment.base, segment.first)
        self._head.store(state)
        self._opened_for(state)
        return state

    def _synced(self, state: State) -> State:
        """The state with everything written made durable."""
        assert self._active is not None
        if state.durable_position == state.position:
            return state
        state = self._begin_sync(state)
        try:
            self._active.file.sync()
        except OSError:
            self._forget_unsynced(state)
            raise
        state = state.synced(state)
        self._head.store(state)
        return state

    def _begin_sync(self, state: State) -> State:
        """Note that a sync is under way; after one that ended badly, what it was to make durable is written again first."""
        assert self._active is not None
        if state.syncing:
            state = self._active.write_again(state)
        state = state._replace(syncing=1)
        self._head.store(state)
        self._opened_for(state).learn(state)
        return state

    def _begin_own_sync(self, state: State, offset: int, cuts: int) -> tuple[State, File] | None:
        """The same for an append before `offset`: with the file to sync, None if it is durable already."""
        if self._settled(state, offset, cuts):
            return None
        state = self._begin_sync(state)
        self._settled(state, offset, cuts)
        assert self._active is not None
        return state, self._active.file

    def _forget_unsynced(self, state: State) -> None:
        assert self._active is not None
        state = self._active.forget_unsynced(state)
        self._head.store(state)
        self._opened_for(state).learn(state)

    # Group commit: called without the lock.

    def _sync_lock_taken(self) -> bool:
        """Take the sync lock, unless somebody has it."""
        try:
            return self._sync_lock.acquire(wait=False)
        except OSError as error:
            raise self._failure("append", error) from error

    def _make_durable(self, offset: int, cuts: int) -> None:
        """Return when everything before `offset` is durable: by this sync or by one that another append made."""
        with self._sync_lock:
            if self._settled(self.state(), offset, cuts):
                return
            with self._locked("sync") as found:
                begun = self._begin_own_sync(found, offset, cuts)
            if begun is not None:
                self._settled(self._finish_sync(*begun), offset, cuts)

    def _finish_sync(self, state: State, file: File) -> State:
        """Sync what was written in `state`, under the sync lock, and publish that it is durable."""
        try:
            file.sync()
        except OSError as error:
            with self._locked("sync") as now:
                if now.segment == state.segment and now.syncing:
                    self._forget_unsynced(now)
            raise self._failure("sync", error) from error
        with self._locked("sync") as found:
            same = found.segment == state.segment and found.cuts == state.cuts
            now = found.synced(state) if same else found
            self._head.store(now)
        return now

    def _settled(self, state: State, offset: int, cuts: int) -> bool:
        # After a cut its offsets may belong to another append, so only a retry, found by its sequence, can tell.
        if state.cuts != cuts:
            raise RecordLost(
                f"an append to {self.directory} before offset {offset} may have been cut off before it was durable",
                hint="send it again: if it is there, it is not stored twice",
            )
        return state.durable >= offset

    def _failure(self, what: str, error: OSError) -> LogError:
        if not self.disk.exists(self.directory):
            return self._deleted()
        return DiskFailed(
            f"{what} of {self.directory} failed: {error.strerror}",
            why="nothing of it is acknowledged",
            hint="free space or replace the disk, then send again",
        )

    def _deleted(self) -> TopicDeleted:
        return TopicDeleted(f"topic {self.topic.name!r} was deleted", hint="create it again, or stop using it")
