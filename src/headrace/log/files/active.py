"""The active segment of a partition as one process has it open: its file, its index, and the last append of each writer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from headrace.core.files.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.files import frame as frames
from headrace.log.files.checksum import checksum
from headrace.log.files.frame import HEADER, Frame
from headrace.log.files.head import PartitionState
from headrace.log.files.layout import StoredBatch
from headrace.log.files.segment import WRITERS_SUFFIX, Segment, Start, segment_path
from headrace.log.files.writers import Author, Last, Writers

_log = logging.getLogger(__name__)
_PADDING = bytes(frames.ALIGNMENT)
_PAGE = 4096


class Body(NamedTuple):
    """A batch, encoded before the lock is taken."""

    stored: StoredBatch
    codec: int
    data: pa.Buffer
    raw_length: int

    @property
    def size(self) -> int:
        """The bytes that it needs in a segment."""
        return HEADER + frames.padded(self.data.size)


class ActiveSegment:
    """Used under the partition's lock. Each change returns the state that the caller is to publish.

    `latest` is the latest event time of this segment and all earlier ones.
    """

    def __init__(self, disk: Disk, directory: Path, state: PartitionState) -> None:
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

    def fits(self, state: PartitionState) -> bool:
        """Whether this is still the active segment, and nothing that was read from it has been cut off."""
        return self.segment.base == state.segment and self._cuts == state.cuts and self._seen <= state.entries

    def remember(self, state: PartitionState, writer: int, last: Last, latest: int) -> None:
        """Record an append of this process once it is published: before that, others may cut it off and replace it."""
        self.writers.record(writer, last)
        self._seen, self._end, self.latest = state.entries, last.next, max(self.latest, latest)

    def learn(self, state: PartitionState) -> None:
        """Read the appends of other processes."""
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

    def write(self, state: PartitionState, bodies: Sequence[Body], author: Author, now: int) -> PartitionState:
        """Append batches after the written ones; not durable and not visible yet. If this raises, the file may be too long."""
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

    def cut(self, state: PartitionState) -> None:
        """Remove the bytes after the end, durably: a later append over them, torn by a power cut, must not show old bytes."""
        self._index.truncate(state.entries * HEADER)
        # The system reports a disk error once to each open file: here to another one than the file that tells whether appends are durable.
        file = self._disk.open(self.segment.path)
        try:
            if state.ragged and state.position % _PAGE:
                # The sync of an earlier cut failed: the page counts as clean, so it is changed, or its end would not be written again.
                file.write([bytes(-state.position % _PAGE)], state.position)
            file.truncate(state.position)
            file.sync()
        finally:
            file.close()

    def close_index(self, state: PartitionState) -> None:
        """Make the index durable before this segment is closed: a closed segment is not recovered from its own frames."""
        self._index.truncate(state.entries * HEADER)
        self._index.sync()

    def following(self, base: int, columns: pa.Schema) -> Start:
        """The start block of the next segment: it records where this one ends, unless it replaces this one."""
        follows = self.segment.start.follows if base == self.segment.base else self._end
        return Start(base, follows, base, columns, self.latest)

    def write_again(self, state: PartitionState) -> PartitionState:
        """Write the data of a failed sync again, as far as it can still be read, since the kernel may have lost it.

        After a failed sync the kernel may count lost pages as clean, so that a second sync alone would report success.
        """
        return self._rewrite(state, state.written)

    def forget_unsynced(self, state: PartitionState) -> PartitionState:
        """After a failed sync, cut off appends that no reader has seen, and write the visible ones again."""
        return self._rewrite(state, state.visible)

    def _rewrite(self, state: PartitionState, until: int) -> PartitionState:
        """Write the appends after the durable ones again, up to the offset `until`, and cut off the others."""
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
            f"{directory} has no segment {base}, which had the last appends",
            why="its records are gone",
            hint="restore the directory from a copy, or give up the lost records with log.repair(topic, partition)",
        ) from error
