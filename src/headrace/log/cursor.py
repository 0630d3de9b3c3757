"""A reader's place in one partition: moves forward over visible records, whatever writers and compaction do meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.schema import TIMESTAMP
from headrace.log import frame as frames
from headrace.log.errors import OffsetOutOfRange
from headrace.log.frame import Frame
from headrace.log.head import State
from headrace.log.partition import Partition
from headrace.log.segment import Segment

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


class Outcomes(Protocol):
    """Knows how a transaction ended."""

    def of(self, frame: Frame) -> str: ...


@dataclass(frozen=True)
class Limits:
    """How much one read may return; at least one record batch is returned if there is any."""

    rows: int = 100_000
    bytes: int = 64 * 1024 * 1024


USUAL = Limits()


class Cursor:
    """Reads one partition from an offset on."""

    def __init__(self, partition: Partition, offset: int, *, outcomes: Outcomes | None = None) -> None:
        self.partition = partition
        self.offset = offset
        self._outcomes = outcomes
        self._segment: Segment | None = None
        self._position = 0
        self._layout = -1

    def seek(self, offset: int) -> None:
        """Go to `offset`; it must be one the log has, or its end."""
        state = self.partition.state()
        if not state.start <= offset <= state.visible:
            raise out_of_range(self.partition, offset, state)
        self.offset, self._segment = offset, None

    def read(self, limits: Limits = USUAL, columns: tuple[str, ...] | None = None, *, until: int | None = None) -> list[pa.RecordBatch]:
        """The next records, up to the offset `until`; empty if there are none yet. Zero-copy where the topic is not compressed."""
        state = self.partition.state()
        if self.offset < state.start:
            raise out_of_range(self.partition, self.offset, state)
        end = state.visible if until is None else min(until, state.visible)
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        while self.offset < end and rows < limits.rows and size < limits.bytes:
            found = self._next(state)
            if found is None:
                self.offset = max(self.offset, end)
                break
            segment, frame = found
            if frame.base >= end:
                self.offset = end
                break
            outcome = self._outcomes.of(frame) if self._outcomes and frame.flags & frames.TRANSACTIONAL else COMMITTED
            if outcome == OPEN:
                break
            if outcome == COMMITTED and frame.count:
                batch = self._cut(segment, frame, min(end, state.visible), limits.rows - rows, columns)
                rows, size = rows + batch.num_rows, size + frame.length
                if batch.num_rows:
                    batches.append(batch)
            else:
                self.offset = frame.next
            if self.offset >= frame.next:
                self._position = frame.end
        return batches

    def _cut(self, segment: Segment, frame: Frame, end: int, rows: int, columns: tuple[str, ...] | None) -> pa.RecordBatch:
        """The part of a frame from the present offset on, at most `rows` of it; moves the offset behind it."""
        layout = self.partition.layout
        stored = segment.records(frame)
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

    def _restore_part(self, frame: Frame, part: pa.RecordBatch, offsets: np.ndarray, columns: tuple[str, ...] | None) -> pa.RecordBatch:
        if "_offset" not in part.schema.names:
            part = part.append_column("_offset", pa.array(offsets))
            frame = _with_flags(frame, frame.flags | frames.OFFSETS)
        return self.partition.layout.restore(frame, part, self.partition.index, columns)

    def _next(self, state: State) -> tuple[Segment, Frame] | None:
        """The next frame at or behind the present offset, or None at the end of what is written."""
        if self._segment is None:
            self._segment = self._locate(state)
        while True:
            segment = self._segment
            active = segment.base == state.segment
            end = state.position if active else segment.size
            if self._position < end:
                frame = segment.frame_at(self._position, end)
                if frame.next > self.offset:
                    return segment, frame
                self._position = frame.end
                continue
            if active:
                return None
            following = [base for base in self.partition.segments(state) if base > segment.base]
            if not following:
                return None
            self._segment = Segment(self.partition.disk, self.partition.directory, self._after(segment, following))
            self._position = self._segment.first

    def _after(self, segment: Segment, following: list[int]) -> int:
        """The segment to go on with: the first that may hold the present offset or a later one."""
        below = [base for base in following if base <= self.offset]
        return below[-1] if below else following[0]

    def _locate(self, state: State) -> Segment:
        bases = self.partition.segments(state)
        below = [base for base in bases if base <= self.offset] or bases[:1]
        segment = Segment(self.partition.disk, self.partition.directory, below[-1])
        end = state.position if segment.base == state.segment else segment.size
        entries = segment.index(end)
        place = int(np.searchsorted(entries["next"], self.offset, side="right"))
        self._position = int(entries["position"][place]) if place < len(entries) else end
        return segment


def offset_for_time(partition: Partition, moment: int) -> int | None:
    """The first offset whose event time is `moment` or later, or None if there is no such record."""
    state = partition.state()
    for base in partition.segments(state):
        segment = Segment(partition.disk, partition.directory, base)
        entries = segment.index(state.position if base == state.segment else segment.size)
        for entry in entries[(entries["max_time"] >= moment) & (entries["next"] > state.start) & (entries["base"] < state.visible)]:
            frame = segment.frame_at(int(entry["position"]), segment.size)
            stored = segment.records(frame)
            later = pc.greater_equal(partition.layout.times(frame, stored), pa.scalar(moment, TIMESTAMP))
            offsets = partition.layout.offsets(frame, stored)[later.fill_null(False).to_numpy(zero_copy_only=False)]
            offsets = offsets[(offsets >= state.start) & (offsets < state.visible)]
            if len(offsets):
                return int(offsets[0])
    return None


def max_event_time(partition: Partition, first: int, last: int) -> int | None:
    """The latest event time among offsets from `first` up to `last`, exclusive; from the index alone where whole batches lie inside."""
    state = partition.state()
    found = frames.NO_TIME
    for base in partition.segments(state):
        if base >= last:
            break
        segment = Segment(partition.disk, partition.directory, base)
        entries = segment.index(state.position if base == state.segment else segment.size)
        entries = entries[(entries["next"] > first) & (entries["base"] < last)]
        inside = (entries["base"] >= first) & (entries["next"] <= last)
        if inside.any():
            found = max(found, int(entries["max_time"][inside].max()))
        for entry in entries[~inside]:
            frame = segment.frame_at(int(entry["position"]), segment.size)
            stored = segment.records(frame)
            offsets = partition.layout.offsets(frame, stored)
            times = partition.layout.times(frame, stored).filter(pa.array((offsets >= first) & (offsets < last)))
            latest = pc.max(times.cast(pa.int64())).as_py()
            found = max(found, latest if latest is not None else found)
    return None if found == frames.NO_TIME else found


def out_of_range(partition: Partition, offset: int, state: State) -> OffsetOutOfRange:
    empty = state.visible == state.start
    held = f"it is empty, the next one is {state.visible}" if empty else f"it has {state.start} to {state.visible - 1}"
    return OffsetOutOfRange(
        f"partition {partition.index} of topic {partition.topic.name!r} has no offset {offset}: {held}",
        why="older records were removed by retention" if 0 <= offset < state.start else "later ones are not written yet",
        hint='seek to "beginning" or "end"',
    )


def _with_flags(frame: Frame, flags: int) -> Frame:
    return Frame(**{name: getattr(frame, name) for name in Frame.__slots__} | {"flags": flags})
