"""One partition: appends from any process, one order, durable when acknowledged.

An append assigns offsets and writes under the partition's lock (write_end.py). The sync that makes it durable runs outside of the lock, and
one sync serves many appends (durability.py). Readers see what is visible: durable appends, and those written with acks="1".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headrace.core.clock import Clock
from headrace.core.files.disk import Disk
from headrace.log.bell import Watch
from headrace.log.errors import TopicDeleted
from headrace.log.files import frame as frames
from headrace.log.files.active import Body
from headrace.log.files.durability import Durability, Write
from headrace.log.files.durable_number import RESERVED, START, store_number
from headrace.log.files.head import Head, PartitionState
from headrace.log.files.layout import BatchLayout, StoredBatch
from headrace.log.files.segment import MERGING, WRITERS_SUFFIX, Segment, Start, segment_bases, segment_path, without_merged
from headrace.log.files.write_end import WriteEnd
from headrace.log.files.writers import Author, Last
from headrace.log.topic import Topic

# The number of offsets that readers may see before they are durable until it is stored again: as many as there are, within these bounds.
_FEWEST_RESERVED, _MOST_RESERVED = 4096, 1 << 24


@dataclass(frozen=True, slots=True)
class Appended:
    """The place of an append. `repeated`: it was already stored, and was not stored again."""

    partition: int
    base: int
    next: int
    repeated: bool = False


class Partition:
    """The records of one partition of a topic, in their order. Threads may share it."""

    def __init__(self, disk: Disk, directory: Path, topic: Topic, index: int, clock: Clock) -> None:
        self.index = index
        self.topic = topic
        self.directory = directory
        self.disk = disk
        self.clock = clock
        self.layout = BatchLayout(topic)
        self._end = WriteEnd(disk, directory, topic.name, clock)
        self._end.on_open = self._opened
        self._durability = Durability(self._end)
        self.on_roll: Callable[[Partition], None] | None = None
        self.on_open: Callable[[Partition], None] | None = None

    @staticmethod
    def create(disk: Disk, directory: Path, topic: Topic) -> None:
        """The files of a new, empty partition."""
        disk.make_directory(directory)
        Segment.create(disk, directory, Start(0, 0, 0, topic.columns, frames.NO_TIME))

    def state(self) -> PartitionState:
        """A consistent state of the partition, recovered first if the last writer or the machine died."""
        return self._end.state()

    def watch(self) -> Watch:
        """The word that changes with every append that readers can see."""
        return self._end.head.watch()

    def append(self, batches: Sequence[StoredBatch], author: Author, *, durable: bool) -> Appended:
        """Store batches as one append: after a crash, all of them are stored or none.

        An append that its writer has already made is found, not repeated.
        """
        codec = frames.CODECS.index(None if self.topic.config.compression_type == "none" else self.topic.config.compression_type)
        bodies = [Body(stored, codec, *frames.encode(stored.batch, codec)) for stored in batches]
        write = partial(self._appended, bodies=bodies, author=author, visible=not durable)
        if durable:
            done = self._durability.append(write)
        else:
            with self._end.locked("append") as state:
                _, done = write(state)
        return done if done is not None else self._append_behind(bodies, write, durable=durable)

    def sync(self) -> None:
        """Make everything written so far durable, and visible."""
        self._durability.sync()

    def last_sequence(self, writer: int) -> int | None:
        """The sequence, or epoch, of the last append of a writer; None if it has none here."""
        with self._end.locked("opening"):
            last = self._end.active.writers.get(writer)
        return last.sequence if last else None

    def mark_deleted(self) -> None:
        """Mark the topic as deleted for every user of the partition."""
        with suppress(TopicDeleted), self._end.locked("deletion") as state:
            self._end.head.store(state._replace(deleted=1))

    def raise_start(self, offset: int) -> None:
        """Raise the first readable offset, durably; records below it may be removed."""
        with self._end.locked("change") as state:
            start = min(offset, state.visible)
            if start > state.start:
                store_number(self.disk, self.directory / START, start)
                self._end.head.store(state._replace(start=start, layout=state.layout + 1))

    def rest(self) -> bool:
        """Close this process's descriptors until they are next needed, if that can be done now; returns whether it was."""
        resting = self._end.rest()
        if resting:
            self._durability.lock.rest()
        return resting

    def close(self) -> None:
        """Close everything; appends that are under way end first."""
        with self._durability.lock:
            self._end.close()
        self._durability.lock.rest()

    @contextmanager
    def exclusive(self) -> Iterator[tuple[PartitionState, Head]]:
        """Hold the partition's lock in order to change its segments; yields the state and takes the new one."""
        with self._end.locked("change") as state:
            yield state, self._end.head

    def mend(self, change: Callable[[PartitionState | None], PartitionState | None]) -> None:
        """Change damaged files, whatever their state; `change` gets the last known state, and returns the part that is still valid."""
        try:
            with self._durability.lock, self._end.lock:
                stale = self._end.head.load(locked=True)
                if stale is not None and stale.deleted:
                    raise self._end.deleted()
                self._end.recovered(change(stale))
        except OSError as error:
            raise self._end.failure("repair", error) from error

    def segments(self, state: PartitionState) -> list[int]:
        """The base offsets of all segments, the active one last."""
        names = self.disk.list(self.directory)
        bases = [base for base in segment_bases(names) if base <= state.segment]
        return without_merged(self.disk, self.directory, bases) if MERGING in names else bases

    def roll(self) -> None:
        """Close the active segment, so that retention and compaction may work on it."""
        with self._durability.lock, self._end.locked("closing a segment") as state:
            if state.entries:
                self._roll(state)
        if state.entries and self.on_roll is not None:
            self.on_roll(self)

    def _opened(self) -> None:
        if self.on_open is not None:
            self.on_open(self)

    def _append_behind(self, bodies: Sequence[Body], write: Write[Appended], *, durable: bool) -> Appended:
        """Write an append that the active segment has no room for into the next segment."""
        # A segment is closed under both locks: a sync of it that is under way must end first.
        with self._durability.lock, self._end.locked("append") as found:
            # Another process may have closed it meanwhile.
            state = found if self._has_room(found, bodies) else self._roll(found)
            after, done = write(state)
        if self.on_roll is not None:
            self.on_roll(self)
        assert done is not None
        if durable:
            self._durability.wait(done.next, after.cuts)
        return done

    # Below: called under the lock.

    def _appended(
        self, state: PartitionState, bodies: Sequence[Body], author: Author, *, visible: bool
    ) -> tuple[PartitionState, Appended | None]:
        """Write an append, or find the stored one; None if the segment has no room for it."""
        active = self._end.active
        made = active.writers.made(author)
        if made is not None:
            return state, Appended(self.index, made.base, made.next, repeated=True)
        if not self._has_room(state, bodies):
            return state, None
        if visible:
            state = self._reserved(state, sum(body.stored.batch.num_rows for body in bodies))
        now = self.clock.now()
        try:
            after = active.write(state, bodies, author, now)
        except OSError:
            with suppress(OSError):
                self._end.cut(state)
            raise
        if visible:
            after = after.shown()
        self._end.head.store(after)
        last = Last(author.generation, author.sequence, state.written, after.written, now)
        active.remember(after, author.writer, last, max(body.stored.max_time for body in bodies))
        return after, Appended(self.index, state.written, after.written)

    def _has_room(self, state: PartitionState, bodies: Sequence[Body]) -> bool:
        full = state.entries > 0 and state.position + sum(body.size for body in bodies) > self.topic.config.segment_bytes
        return not full and bool(self._end.active.segment.columns.equals(self.topic.columns))

    def _reserved(self, state: PartitionState, count: int) -> PartitionState:
        """Record durably that offsets of the next `count` records may be seen before the records are durable."""
        written = state.written + count
        if written <= state.reserved:
            return state
        reserved = written + min(max(written, _FEWEST_RESERVED), _MOST_RESERVED)
        store_number(self.disk, self.directory / RESERVED, reserved)
        return state._replace(reserved=reserved)

    def _roll(self, state: PartitionState) -> PartitionState:
        """Close the active segment and begin a new one; called under both locks."""
        end = self._end
        state = self._durability.synced(state)
        active = end.active
        active.close_index(state)
        end.head.store(state._replace(rolling=1))
        path = segment_path(self.directory, state.written)
        try:
            self.disk.replace(path.with_suffix(WRITERS_SUFFIX), active.writers.pack(self.clock.now()))
            start = active.following(state.written, self.topic.columns)
            segment = Segment.create(self.disk, self.directory, start)
        except OSError:
            if not self.disk.exists(path):
                end.head.store(state)
            raise
        state = state.rolled(segment.base, segment.first)
        end.head.store(state)
        end.follow(state)
        return state
