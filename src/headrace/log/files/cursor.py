"""A reader's place in one partition: it moves forward over visible records, whatever writers and compaction do meanwhile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.columns.schema import TIMESTAMP
from headrace.core.errors import LogError
from headrace.log.errors import CorruptLog, OffsetOutOfRange
from headrace.log.files import frame as frames
from headrace.log.files.frame import Frame
from headrace.log.files.head import PartitionState
from headrace.log.files.partition import Partition
from headrace.log.files.segment import Segment

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"
_RETRIES = 100


class Outcomes(Protocol):
    """The outcome of transactions."""

    def of(self, frame: Frame) -> str: ...


@dataclass(frozen=True)
class ReadLimits:
    """The limits of one read; at least one record batch is returned if there is any."""

    rows: int = 100_000
    bytes: int = 64 * 1024 * 1024


USUAL = ReadLimits()


class Cursor:
    """Reads one partition from an offset on."""

    def __init__(self, partition: Partition, offset: int, *, outcomes: Outcomes | None = None) -> None:
        self.partition = partition
        self.offset = offset
        self._outcomes = outcomes
        self._segment: Segment | None = None
        self._position = 0
        self._begun: tuple[Segment, Frame, pa.RecordBatch] | None = None

    def seek(self, offset: int) -> None:
        """Go to `offset`, which must be one that the log has, or its end."""
        state = self.partition.state()
        if not state.start <= offset <= state.visible:
            raise out_of_range(self.partition, offset, state)
        self.offset, self._segment = offset, None

    def read(self, limits: ReadLimits = USUAL, columns: tuple[str, ...] | None = None, *, until: int | None = None) -> list[pa.RecordBatch]:
        """The next records, up to the offset `until`; empty if there are none yet. Zero-copy where the topic is not compressed."""
        state = self.partition.state()
        if self.offset < state.start:
            raise out_of_range(self.partition, self.offset, state)
        end = state.visible if until is None else min(until, state.visible)
        batches: list[pa.RecordBatch] = []
        try:
            self._read(batches, state, end, limits, columns)
        except LogError:
            # A repair may replace this file by another.
            self._segment = None
            if not batches:
                raise
            # Records that were already read must not be lost; the error is raised by the next read.
        return batches

    def _read(
        self, batches: list[pa.RecordBatch], state: PartitionState, end: int, limits: ReadLimits, columns: tuple[str, ...] | None
    ) -> None:
        rows = size = 0
        while self.offset < end and rows < limits.rows and size < limits.bytes:
            state, segment, frame = self._next(state)
            if frame is None:
                self.offset = max(self.offset, end)
                return
            if frame.base >= end:
                self.offset = end
                return
            outcome = self._outcomes.of(frame) if self._outcomes and frame.flags & frames.TRANSACTIONAL else COMMITTED
            if outcome == OPEN:
                return
            if outcome == COMMITTED and frame.count:
                batch = self._cut(segment, frame, min(end, state.visible), limits.rows - rows, columns)
                rows, size = rows + batch.num_rows, size + frame.raw_length
                if batch.num_rows:
                    batches.append(batch)
            else:
                self.offset = frame.next
            if self.offset >= frame.next:
                self._position = frame.end
                self._begun = None

    def _cut(self, segment: Segment, frame: Frame, end: int, rows: int, columns: tuple[str, ...] | None) -> pa.RecordBatch:
        """The part of a frame from the present offset on, at most `rows` records; moves the offset past it."""
        layout = self.partition.layout
        stored = self._records(segment, frame)
        if self.offset <= frame.base and frame.next <= end and stored.num_rows <= rows:
            self.offset = frame.next
        else:
            offsets = layout.offsets(frame, stored)
            first, last = (int(place) for place in np.searchsorted(offsets, [self.offset, end]))
            taken = min(rows, last - first)
            whole = first + taken == stored.num_rows
            self.offset = frame.next if whole and frame.next <= end else end if first + taken == last else int(offsets[first + taken])
            if taken < stored.num_rows:
                stored = stored.slice(first, taken)
                return self._restore_part(frame, stored, offsets[first : first + taken], columns)
        return layout.restore(frame, stored, self.partition.index, columns)

    def _records(self, segment: Segment, frame: Frame) -> pa.RecordBatch:
        """The records of a frame, checked and decoded once, however many reads return parts of them."""
        if self._begun is None or self._begun[0] is not segment or self._begun[1] != frame:
            self._begun = segment, frame, segment.records(frame)
        return self._begun[2]

    def _restore_part(self, frame: Frame, part: pa.RecordBatch, offsets: np.ndarray, columns: tuple[str, ...] | None) -> pa.RecordBatch:
        if "_offset" not in part.schema.names:
            part = part.append_column("_offset", pa.array(offsets))
            frame = frame._replace(flags=frame.flags | frames.OFFSETS)
        return self.partition.layout.restore(frame, part, self.partition.index, columns)

    def _next(self, state: PartitionState) -> tuple[PartitionState, Segment, Frame | None]:
        """The next frame at or after the present offset, None at the end of what is written, with the state that its segment belongs to."""
        while True:
            if self._segment is None:
                state, self._segment, self._position = locate(self.partition, self.offset)
                if self.offset < state.start:
                    raise out_of_range(self.partition, self.offset, state)
            segment = self._segment
            active = segment.base == state.segment
            end = state.visible_position if active else segment.size
            if self._position < end:
                try:
                    frame = segment.frame_at(self._position, end)
                except FileNotFoundError:
                    # Compaction replaced the file while it grew.
                    self._segment = None
                    continue
                if frame.next > self.offset:
                    return state, segment, frame
                self._position = frame.end
            elif active:
                if end == segment.first:
                    # An empty segment may be replaced by one with another column, so the next read opens it again.
                    self._segment = None
                return state, segment, None
            else:
                self._segment = None


class LocatedFrame(NamedTuple):
    """An open segment, the state of the partition that it belongs to, and the position of a frame in it."""

    state: PartitionState
    segment: Segment
    position: int


def locate(partition: Partition, offset: int) -> LocatedFrame:
    """The first frame with `offset` or a later one, or the end of the active segment.

    Retention and compaction may remove a file between listing the directory and opening it; another listing finds its replacement.
    """
    for _ in range(_RETRIES):
        state = partition.state()
        try:
            found = _search(partition, offset, state)
        except FileNotFoundError:
            continue
        # Unchanged: the segment that this state names as active was still active when it was opened.
        if partition.state().layout == state.layout:
            return found
    raise LogError(f"the segments of {partition.directory} changed {_RETRIES} times while they were opened", hint="try again")


def _search(partition: Partition, offset: int, state: PartitionState) -> LocatedFrame:
    before: Segment | None = None
    for base in _bases_from(partition, state, offset):
        if before is not None and base < before.covers:
            # Merged into the previous one since the directory was listed.
            continue
        segment = Segment(partition.disk, partition.directory, base)
        if before is not None:
            before.check_end(segment)
        end = state.visible_position if base == state.segment else segment.size
        position = segment.position_of(offset, end)
        if position < end or base == state.segment:
            return LocatedFrame(state, segment, position)
        before = segment
    raise FileNotFoundError(partition.directory)


def _bases_from(partition: Partition, state: PartitionState, offset: int) -> list[int]:
    """The segments with `offset` and later ones; at the end of the partition the directory is not listed."""
    if offset >= state.segment:
        return [state.segment]
    bases = partition.segments(state)
    return bases[max(bisect_right(bases, offset) - 1, 0) :]


def indexes(partition: Partition, offset: int, last: int = frames.ANY_TIME) -> Iterator[tuple[Segment, np.ndarray]]:
    """The segments with `offset` and later ones up to `last`, each with its index."""
    while True:
        state, segment, _ = locate(partition, offset)
        before: Segment | None = None
        for base in _bases_from(partition, state, segment.base):
            if base >= last:
                return
            try:
                segment = segment if base == segment.base else Segment(partition.disk, partition.directory, base)
            except FileNotFoundError:
                break
            if partition.state().layout != state.layout:
                # Retention or compaction ran meanwhile: another listing finds the replacement of the rest.
                break
            if before is not None:
                before.check_end(segment)
            before = segment
            try:
                entries = segment.entries(offset, last, state.visible_position if base == state.segment else segment.size)
            except FileNotFoundError:
                break
            if len(entries):
                yield segment, entries
                offset = max(offset, int(entries["next"][-1]))
            if base == state.segment:
                return


def offset_for_time(partition: Partition, moment: int) -> int | None:
    """The first offset whose event time is `moment` or later, or None if there is no such record."""
    state = partition.state()
    for segment, entries in indexes(partition, max(state.start, _first_with(partition, state, moment))):
        for entry in entries[(entries["max_time"] >= moment) & (entries["next"] > state.start) & (entries["base"] < state.visible)]:
            frame = segment.frame_at(int(entry["position"]), segment.size)
            stored = segment.records(frame)
            later = pc.greater_equal(partition.layout.times(frame, stored), pa.scalar(moment, TIMESTAMP))
            offsets = partition.layout.offsets(frame, stored)[later.fill_null(False).to_numpy(zero_copy_only=False)]
            offsets = offsets[(offsets >= state.start) & (offsets < state.visible)]
            if len(offsets):
                return int(offsets[0])
    return None


def _first_with(partition: Partition, state: PartitionState, moment: int) -> int:
    """An offset before which no record has this event time or a later one: each segment records the latest event time before it."""
    bases = partition.segments(state)
    try:
        place = bisect_left(bases, moment, key=lambda base: Segment(partition.disk, partition.directory, base).start.latest)
    except (FileNotFoundError, CorruptLog):
        # Retention or compaction ran meanwhile, or there is damage: search every segment that exists.
        return state.start
    return bases[max(place - 1, 0)]


def max_event_time(
    partition: Partition, first: int, last: int, limit: int = frames.ANY_TIME, outcomes: Outcomes | None = None
) -> int | None:
    """The latest event time among offsets from `first` up to `last`, exclusive; from the index alone where whole batches are inside.

    Times above `limit` do not count: a batch with such a time is read. With `outcomes`, records of aborted transactions do not count.
    """
    found = frames.NO_TIME
    for segment, index in indexes(partition, max(first, partition.state().start), last):
        entries = index[(index["next"] > first) & (index["base"] < last) & (index["count"] > 0)]
        if outcomes is not None:
            entries = without_aborted(segment, entries, outcomes)
        inside = (entries["base"] >= first) & (entries["next"] <= last) & (entries["max_time"] <= limit)
        if inside.any():
            found = max(found, int(entries["max_time"][inside].max()))
        for entry in entries[~inside]:
            frame = segment.frame_at(int(entry["position"]), segment.size)
            stored = segment.records(frame)
            offsets = partition.layout.offsets(frame, stored)
            times = partition.layout.times(frame, stored).filter(pa.array((offsets >= first) & (offsets < last)))
            known = times.cast(pa.int64())
            latest = pc.max(known.filter(pc.less_equal(known, limit))).as_py()
            found = max(found, latest if latest is not None else found)
    return None if found == frames.NO_TIME else found


def without_aborted(segment: Segment, entries: np.ndarray, outcomes: Outcomes) -> np.ndarray:
    """The entries of an index whose transactions were not aborted."""
    void = {
        int(entry["position"])
        for entry in entries[(entries["flags"] & frames.TRANSACTIONAL) != 0]
        if outcomes.of(segment.frame_at(int(entry["position"]), segment.size)) == ABORTED
    }
    return entries[~np.isin(entries["position"], list(void))] if void else entries


def sizes(partition: Partition, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The offsets from `first` up to `last` at which batches end, and the bytes of all records up to each, from the index."""
    ends, parts = [np.empty(0, np.int64)], [np.empty(0)]
    for _, entries in indexes(partition, first, last):
        inside = entries[(entries["next"] > first) & (entries["base"] < last)]
        end = np.minimum(inside["next"], last)
        share = (end - np.maximum(inside["base"], first)) / np.maximum(inside["next"] - inside["base"], 1)
        ends.append(end)
        parts.append(inside["raw_length"] * share)
    return np.concatenate(ends), np.cumsum(np.concatenate(parts))


def out_of_range(partition: Partition, offset: int, state: PartitionState) -> OffsetOutOfRange:
    empty = state.visible == state.start
    held = f"it is empty, the next one is {state.visible}" if empty else f"it has {state.start} to {state.visible - 1}"
    return OffsetOutOfRange(
        f"partition {partition.index} of topic {partition.topic.name!r} has no offset {offset}: {held}",
        why="older records were removed by retention" if 0 <= offset < state.start else "later ones are not written yet",
        hint='seek to "beginning" or "end"',
    )
