"""The segment that takes a partition's appends, as one process has it open: its file, its index, and the last append of each writer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from headrace.log import frame as frames
from headrace.log.checksum import checksum
from headrace.log.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.frame import HEADER, Frame
from headrace.log.head import State
from headrace.log.layout import Stored
from headrace.log.segment import WRITERS_SUFFIX, Segment, Start, segment_path
from headrace.log.writers import Author, Last, Writers

_log = logging.getLogger(__name__)
_PADDING = bytes(frames.ALIGNMENT)
_PAGE = 4096


class Body(NamedTuple):
    """A batch, encoded before the lock is taken."""

    stored: Stored
    codec: int
    data: pa.Buffer
    raw_length: int

    @property
    def size(self) -> int:
        """The room it takes in a segment."""
        return HEADER + frames.padded(self.data.size)


class ActiveSegment:
    """Used under the partition's lock. Each change gives the state that the caller is to publish.

    `latest` is the latest event time of this segment and all before it.
    """

    def __init__(self, disk: Disk, directory: Path, state: State) -> None:
        self._disk = disk
        self.segment = _existing(disk, directory, state.segment)
        self.file = disk.open(self.segment.path)
        self._index = disk.open(self.segment.index_path, create=True)
        self._cuts = state.cuts
        self._seen = 0
        self._end = state.segment
        self.latest = self.segment.start.latest
        path = segment_path(directory, state.segment, WRITERS_SUFFIX)
        self.writers = Writers.unpack(disk.read(path), str(path)) if disk.exists(path) else Writers()

    def fits(self, state: State) -> bool:
        """Whether this is still the segment that takes appends, with nothing taken back that was learned from it."""
        return self.segment.base == state.segment and self._cuts == state.cuts and self._seen <= state.entries

    def remember(self, state: State, writer: int, last: Last, latest: int) -> None:
        """Take in an append of this process, once it is published: before, others may cut it off and put theirs in its place."""
        self.writers.note(writer, last)
        self._seen, self._end, self.latest = state.entries, last.next, max(self.latest, latest)

    def learn(self, state: State) -> None:
        """Take in what other processes have appended."""
        missing = state.entries - self._seen
        if not missing:
            return
        entries = frames.checked_index(self._index.read(self._seen * HEADER, missing * HEADER))
        if entries is None or len(entries) != missing:
            found = self.segment.scan_index(state.position)
            self._index.write([found.tobytes()], 0)
            entries = found[self._seen :]
        self.writers.learn(entries)
        self._seen, self._end = state.entries, int(entries["next"][-1])
        self.latest = max(self.latest, int(entries["max_time"].max()))

    def write(self, state: State, bodies: Sequence[Body], author: Author, now: int) -> State:
        """Append batches behind what is written; not durable and not visible yet. If this raises, the file may be too long."""
        base, position = state.written, state.position
        headers: list[bytes] = []
        parts: list[bytes | pa.Buffer] = []
        for number, (stored, codec, data, raw_length) in enumerate(bodies, 1):
            flags = stored.flags | (frames.MORE if number < len(bodies) else 0) | (frames.TRANSACTIONAL if author.transaction else 0)
            rows = stored.batch.num_rows
            frame = Frame(
                base=base, next=base + rows, count=rows, length=data.size, position=position,
                min_time=stored.min_time, max_time=stored.max_time, appended_at=now, writer=author.writer,
                generation=author.generation, sequence=author.sequence, transaction=author.transaction,
                durable=state.durable_position, raw_length=raw_length, flags=flags, codec=codec, crc=checksum(data),
                blank=frames.blank_sectors(data, position),
            )  # fmt: skip
            headers.append(frame.pack())
            parts += [headers[-1], data, _PADDING[: frames.padded(data.size) - data.size]]
            base, position = frame.next, frame.end
        self.file.write([part for part in parts if len(part)], state.position)
        self._index.write([b"".join(headers)], state.entries * HEADER)
        return state._replace(position=position, entries=state.entries + len(headers), written=base)

    def cut(self, state: State) -> None:
        """Remove what is behind the end, durably: a later append over it, torn by a power cut, must not show old bytes."""
        self._index.truncate(state.entries * HEADER)
        # An error of the disk is told once to each open file: here to another one than that which says whether appends are durable.
        file = self._disk.open(self.segment.path)
        try:
            if state.ragged and state.position % _PAGE:
                # The sync of an earlier cut failed: the page counts as clean, so it is changed, or its end would not be written again.
                file.write([bytes(-state.position % _PAGE)], state.position)
            file.truncate(state.position)
            file.sync()
        finally:
            file.close()

    def close_index(self, state: State) -> None:
        """Make the index durable, for when this segment takes no more appends and is no longer recovered from itself."""
        self._index.truncate(state.entries * HEADER)
        self._index.sync()

    def following(self, base: int, columns: pa.Schema) -> Start:
        """How the next segment begins: it says where this one ends, unless it takes its very place."""
        follows = self.segment.start.follows if base == self.segment.base else self._end
        return Start(base, follows, base, columns, self.latest)

    def write_again(self, state: State) -> State:
        """Give the kernel once more what it was to make durable and may have lost, as far as that can still be read.

        After a failed sync the kernel may count lost pages as clean, so a second sync alone would lie.
        """
        return self._rewrite(state, state.written)

    def forget_unsynced(self, state: State) -> State:
        """After a failed sync: cut off appends that nobody has seen, and write those once more that were visible already."""
        return self._rewrite(state, state.visible)

    def _rewrite(self, state: State, until: int) -> State:
        """Write the appends behind the durable ones again, up to the offset `until`, and cut off the others."""
        position, entries, offset = state.durable_position, len(self.segment.scan_index(state.durable_position)), state.durable
        place, count = position, 0
        while place < state.position:
            frame = self.segment.sound_frame(place, state.position)
            if frame is None or frame.next > until:
                break
            place, count = frame.end, count + 1
            if not frame.flags & frames.MORE:
                position, entries, offset, count = place, entries + count, frame.next, 0
        if offset < min(until, state.visible):
            _log.error("%s: the disk lost offsets %d to %d, written with acks=1", self.segment.path, offset, until - 1)
        again = self.file.read(state.durable_position, position - state.durable_position)
        if position < state.position:
            self._index.truncate(entries * HEADER)
            self.file.truncate(position)
        if again:
            self.file.write([again], state.durable_position)
        return state._replace(
            position=position, entries=entries, written=max(offset, state.visible), visible_position=min(state.visible_position, position),
            cuts=state.cuts + (position < state.position), syncing=0, ragged=state.ragged | (position < state.position),
        )  # fmt: skip


def _existing(disk: Disk, directory: Path, base: int) -> Segment:
    try:
        return Segment(disk, directory, base)
    except FileNotFoundError as error:
        if not disk.exists(directory):
            raise
        raise CorruptLog(
            f"{directory} has no segment {base}, which took the last appends",
            why="its records are gone",
            hint="restore the directory from a copy, or give up the lost records with log.repair(topic, partition)",
        ) from error
