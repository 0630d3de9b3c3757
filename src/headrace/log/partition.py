"""One partition: appends from any process, one order, durable when acknowledged.

An append assigns offsets and writes under the partition's lock; the sync that makes it durable happens outside of it, and
one sync serves every append written before it began (group commit, also between processes). Readers see what is visible:
durable appends, and those written with acks="1".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.errors import LogError
from headrace.log import frame as frames
from headrace.log import head as heads
from headrace.log.checksum import checksum
from headrace.log.disk import Disk, File
from headrace.log.errors import CorruptLog, DiskFailed, Fenced, RecordLost, TopicDeleted
from headrace.log.frame import HEADER, Frame
from headrace.log.head import Head, State
from headrace.log.layout import Layout, Stored
from headrace.log.segment import MERGING, WRITERS_SUFFIX, Segment, segment_bases, segment_path, torn_start, without_merged
from headrace.log.topic import Topic
from headrace.log.writers import NOBODY, Writers

_log = logging.getLogger(__name__)
_PADDING = bytes(frames.ALIGNMENT)
START = "start"


@dataclass(frozen=True, slots=True)
class Author:
    """Who appends: a writer, its generation (a newer one fences it), its sequence in this partition, its transaction (0: none)."""

    writer: int = NOBODY
    generation: int = 0
    sequence: int = 0
    transaction: int = 0


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an append went. `repeated`: it was there already, and was not stored again."""

    partition: int
    base: int
    next: int
    repeated: bool = False


class _Body(NamedTuple):
    """A batch as its frame stores it."""

    stored: Stored
    codec: int
    data: pa.Buffer
    raw_length: int


class Partition:
    """The records of one partition of a topic, in their order."""

    def __init__(self, disk: Disk, directory: Path, topic: Topic, index: int, clock: Clock) -> None:
        self.index = index
        self.topic = topic
        self.directory = directory
        self.disk = disk
        self.clock = clock
        self.layout = Layout(topic)
        self._lock = disk.lock(directory / "lock")
        self._sync_lock = disk.lock(directory / "sync")
        self._head = Head(disk.shared(directory / "head", heads.SIZE))
        self._boot = checksum(disk.boot().encode()) + 1
        self._active: Segment | None = None
        self._index_file: File | None = None
        self._writers = Writers()
        self._entries_seen = 0
        self._opened = False
        self.on_roll: Callable[[Partition], None] | None = None

    @staticmethod
    def create(disk: Disk, directory: Path, topic: Topic) -> None:
        """The files of a new, empty partition."""
        disk.make_directory(directory)
        Segment.create(disk, directory, 0, topic.columns).close()

    def state(self) -> State:
        """A consistent picture of the partition, recovered first if the last writer or the machine died."""
        state = self._head.load() if self._opened else None
        if state is None or state.boot != self._boot:
            with self._lock:
                state = self._fresh()
            self._opened = True
        if state.deleted:
            raise TopicDeleted(f"topic {self.topic.name!r} was deleted", hint="create it again, or stop using it")
        return state

    def append(self, batches: Sequence[Stored], author: Author, *, durable: bool) -> Appended:
        """Store batches as one append: after a crash all of them are there, or none.

        An append that its writer has made before is found and not repeated.
        """
        codec = frames.CODECS.index(None if self.topic.config.compression_type == "none" else self.topic.config.compression_type)
        bodies = [_Body(stored, codec, *frames.encode(stored.batch, codec)) for stored in batches]
        with self._lock:
            try:
                state = self._fresh()
                if state.deleted:
                    raise TopicDeleted(f"topic {self.topic.name!r} was deleted", why="nothing was written", hint="create it again")
                done = self._repeated(author)
                if done is None:
                    state = self._room(state, sum(HEADER + frames.padded(body.data.size) for body in bodies))
                    done = self._write(state, bodies, author, visible=not durable)
            except OSError as error:
                raise _disk_failed("append", self.directory, error) from error
            cuts = state.cuts
        if durable:
            self._make_durable(done.next, cuts)
        return done

    def sync(self) -> None:
        """Make everything written so far durable, and visible."""
        with self._lock:
            state = self._fresh()
        if state.durable < state.written:
            self._make_durable(state.written, state.cuts)

    def last_sequence(self, writer: int) -> int | None:
        """The sequence, or epoch, of the last append of a writer; None if it has none here."""
        with self._lock:
            self._fresh()
            last = self._writers.get(writer)
        return last.sequence if last else None

    def mark_deleted(self) -> None:
        with self._lock:
            self._head.store(self._fresh()._replace(deleted=1))

    def raise_start(self, offset: int) -> None:
        """Move the first readable offset up, durably; what is below may be removed."""
        with self._lock:
            state = self._fresh()
            start = min(offset, state.visible)
            if start > state.start:
                self.disk.replace(self.directory / START, packed_start(start))
                self._head.store(state._replace(start=start, layout=state.layout + 1))

    @contextmanager
    def exclusive(self) -> Iterator[tuple[State, Head]]:
        """Hold the partition's lock, to change its set of segments; gives the state, takes the new one."""
        with self._lock:
            yield self._fresh(), self._head

    def segments(self, state: State) -> list[int]:
        """The base offsets of all segments, the active one last."""
        names = self.disk.list(self.directory)
        bases = [base for base in segment_bases(names) if base <= state.segment]
        return without_merged(self.disk, self.directory, bases) if MERGING in names else bases

    def roll(self) -> None:
        """Close the active segment, so that retention and compaction may work on it."""
        with self._lock:
            state = self._fresh()
            if state.entries:
                self._roll(state)

    # Below: called under the lock.

    def _fresh(self) -> State:
        """The state, with the files this process has open brought in step with what other processes did."""
        state = self._head.load()
        if state is None or state.boot != self._boot:
            state = self._recover(state)
        segment = self._active
        if segment is None or segment.base != state.segment:
            segment = self._open(state)
        size = segment.size
        if size < state.position:
            _log.warning("%s: ends at %d, not at %d where it was written to", segment.path, size, state.position)
            state = self._recover(state)
        elif size > state.position:
            # A writer died between its write and the head: the rest was never acknowledged.
            segment.file.truncate(state.position)
        self._learn(state)
        return state

    def _open(self, state: State) -> Segment:
        # The files before are not closed by hand: another thread may be syncing one, and its number must not be given away.
        self._active = Segment(self.disk, self.directory, state.segment)
        self._index_file = self.disk.open(self._active.index_path, create=True)
        path = self._active.path.with_suffix(WRITERS_SUFFIX)
        self._writers = Writers.unpack(_whole(self.disk, path), str(path)) if self.disk.exists(path) else Writers()
        self._entries_seen = 0
        return self._active

    def _learn(self, state: State) -> None:
        if self._entries_seen == state.entries:
            return
        assert self._active is not None
        assert self._index_file is not None
        data = self._index_file.read(self._entries_seen * HEADER, (state.entries - self._entries_seen) * HEADER)
        entries = frames.checked_index(data)
        if entries is None or len(entries) != state.entries - self._entries_seen:
            entries = self._active.scan_index(state.position)
            self._index_file.write([entries.tobytes()], 0)
            self._writers = Writers() if self._entries_seen == 0 else self._writers
            entries = entries[self._entries_seen :]
        self._writers.learn(entries)
        self._entries_seen = state.entries

    def _repeated(self, author: Author) -> Appended | None:
        last = self._writers.get(author.writer) if author.writer != NOBODY else None
        if last is None:
            return None
        if last.generation > author.generation:
            raise Fenced(
                f"writer {author.writer:x} of generation {author.generation} was replaced by generation {last.generation}",
                why="its appends would mix with those of its successor",
                hint="stop this writer; the new one goes on",
            )
        if author.sequence > last.sequence:
            return None
        return Appended(self.index, last.base, last.next, repeated=True)

    def _room(self, state: State, size: int) -> State:
        assert self._active is not None
        full = state.entries > 0 and state.position + size > self.topic.config.segment_bytes
        return self._roll(state) if full or not self._active.columns.equals(self.topic.columns) else state

    def _roll(self, state: State) -> State:
        assert self._active is not None
        self._guarded_sync(state)
        path = segment_path(self.directory, state.written)
        self.disk.replace(path.with_suffix(WRITERS_SUFFIX), self._writers.pack(self.clock.now()))
        segment = Segment.create(self.disk, self.directory, state.written, self.topic.columns)
        state = state._replace(
            segment=segment.base, position=segment.first, entries=0, durable=state.written, durable_position=segment.first,
            visible=state.written, layout=state.layout + 1,
        )  # fmt: skip
        self._head.store(state)
        self._open(state)
        if self.on_roll is not None:
            self.on_roll(self)
        return state

    def _write(self, state: State, bodies: list[_Body], author: Author, *, visible: bool) -> Appended:
        assert self._active is not None
        assert self._index_file is not None
        base, position, parts, headers, now = state.written, state.position, [], [], self.clock.now()
        for number, (stored, codec, data, raw_length) in enumerate(bodies, 1):
            flags = stored.flags | (frames.MORE if number < len(bodies) else 0) | (frames.TRANSACTIONAL if author.transaction else 0)
            rows = stored.batch.num_rows
            frame = Frame(
                base=base, next=base + rows, count=rows, length=data.size, position=position,
                min_time=stored.min_time, max_time=stored.max_time, appended_at=now, writer=author.writer,
                generation=author.generation, sequence=author.sequence, transaction=author.transaction,
                durable=state.durable_position, raw_length=raw_length, flags=flags, codec=codec, crc=checksum(data),
            )  # fmt: skip
            headers.append(frame.pack())
            parts += [headers[-1], data, _PADDING[: frames.padded(data.size) - data.size]]
            base, position = frame.next, frame.end
        try:
            self._active.file.write([part for part in parts if len(part)], state.position)
            self._index_file.write([b"".join(headers)], state.entries * HEADER)
        except OSError:
            self._cut(state)
            raise
        after = state._replace(position=position, entries=state.entries + len(headers), written=base)
        self._head.store(after._replace(visible=base) if visible else after)
        self._learn(after)
        return Appended(self.index, state.written, base)

    def _cut(self, state: State) -> None:
        """Take back a write that failed half-way. If even that fails, the next user of the partition does it."""
        assert self._active is not None
        try:
            self._active.file.truncate(state.position)
        except OSError as error:
            _log.warning("%s: could not cut back to %d: %s", self._active.path, state.position, error)

    def _guarded_sync(self, state: State) -> None:
        """Make the active segment durable, under the lock; what a failing disk did not take is cut off."""
        assert self._active is not None
        if state.durable_position == state.position:
            return
        try:
            self._active.file.sync()
        except OSError:
            self._forget_unsynced(state)
            raise

    def _forget_unsynced(self, state: State) -> None:
        """After a failed sync the kernel may count the lost pages as clean, so a second sync would lie.

        Appends that nobody has seen are cut off and their writers told; those written with acks="1" are written once more.
        """
        assert self._active is not None
        kept_position, kept_entries, kept = state.durable_position, 0, state.durable
        for entry in self._active.scan_index(state.position):
            if int(entry["next"]) <= max(state.visible, state.durable):
                kept_position, kept = int(entry["position"]) + HEADER + frames.padded(int(entry["length"])), int(entry["next"])
                kept_entries += 1
        again = self._active.file.read(state.durable_position, kept_position - state.durable_position)
        self._active.file.truncate(kept_position)
        if again:
            self._active.file.write([again], state.durable_position)
        state = state._replace(position=kept_position, entries=kept_entries, written=kept, cuts=state.cuts + 1)
        self._head.store(state)
        self._open(state)
        self._learn(state)

    def _recover(self, stale: State | None) -> State:
        """Find the end of the log from its files: cut a torn tail, make the rest durable, publish a new head."""
        bases = segment_bases(self.disk.list(self.directory))
        active = self._last_segment(bases)
        end = active.recover()
        if active.size > end:
            _log.warning("%s: cut %d bytes of an append that a crash interrupted", active.path, active.size - end)
            active.file.truncate(end)
        active.file.sync()
        entries = active.scan_index(end)
        index = self.disk.open(active.index_path, create=True)
        index.truncate(0)
        index.write([entries.tobytes()], 0)
        index.close()
        start = max(bases[0], stale.start if stale else 0, self._stored_start())
        written = max(start, int(entries["next"][-1]) if len(entries) else active.covers)
        if stale is not None and not stale.deleted:
            # Readers may have seen offsets that a power cut took back: never give them to other records.
            written = max(written, stale.visible)
        state = State(
            boot=self._boot, segment=active.base, position=end, entries=len(entries),
            written=written, durable=written, durable_position=end, visible=written,
            start=start, cuts=(stale.cuts if stale else 0) + 1, layout=(stale.layout if stale else 0) + 1,
            deleted=stale.deleted if stale else 0,
        )  # fmt: skip
        self._head.store(state)
        self._open(state)
        return state

    def _stored_start(self) -> int:
        path = self.directory / START
        if not self.disk.exists(path):
            return 0
        data = _whole(self.disk, path)
        start = int.from_bytes(data[:8], "little")
        if data != packed_start(start):
            raise CorruptLog(
                f"{path} is not what was written",
                why="it says which records were deleted",
                hint="restore the file from a copy, or run log.repair(topic, partition)",
            )
        return start

    def _last_segment(self, bases: list[int]) -> Segment:
        """The segment that takes appends. One that a crash left without its first block never held a record, and is made anew."""
        if not bases:
            raise CorruptLog(f"{self.directory} has no segment", why="its records are gone", hint="restore the directory from a copy")
        path = segment_path(self.directory, bases[-1])
        if torn_start(_whole(self.disk, path)):
            _log.warning("%s: made anew, a crash interrupted its creation", path)
            return Segment.create(self.disk, self.directory, bases[-1], self.topic.columns)
        return Segment(self.disk, self.directory, bases[-1])

    # Group commit: called without the lock.

    def _make_durable(self, offset: int, cuts: int) -> None:
        """Return when everything before `offset` is durable: by this sync or by one that another append made."""
        with self._sync_lock:
            state = self.state()
            if self._settled(state, offset, cuts):
                return
            with self._lock:
                state = self._fresh()
                if self._settled(state, offset, cuts):
                    return
                assert self._active is not None
                file, base = self._active.file, self._active.base
            try:
                file.sync()
            except OSError as error:
                with self._lock:
                    now = self._fresh()
                    if now.segment == base:
                        self._forget_unsynced(now)
                raise _disk_failed("sync", segment_path(self.directory, base), error) from error
            with self._lock:
                now = self._fresh()
                if now.segment == base and now.cuts == state.cuts and now.durable < state.written:
                    now = now._replace(durable=state.written, durable_position=state.position, visible=max(now.visible, state.written))
                    self._head.store(now)
            self._settled(now, offset, cuts)

    def _settled(self, state: State, offset: int, cuts: int) -> bool:
        # After a cut its offsets may belong to another append, so only a retry, found by its sequence, can tell.
        if state.cuts != cuts:
            raise RecordLost(
                f"an append to {self.directory} before offset {offset} may have been cut off before it was durable",
                hint="send it again: if it is there, it is not stored twice",
            )
        return state.durable >= offset


def packed_start(offset: int) -> bytes:
    """What the file that keeps the first readable offset holds."""
    data = offset.to_bytes(8, "little")
    return data + checksum(data).to_bytes(4, "little")


def _whole(disk: Disk, path: Path) -> bytes:
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _disk_failed(what: str, path: Path, error: OSError) -> LogError:
    return DiskFailed(
        f"{what} of {path} failed: {error.strerror}",
        why="nothing of it is acknowledged",
        hint="free space or replace the disk, then send again",
    )
