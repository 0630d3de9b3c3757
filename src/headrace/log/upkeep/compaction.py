"""Compaction: only the latest record of each key stays, at its offset, and neighboring small segments become one.

Compaction works on closed segments from the front, up to the first one that is too young, has a record of an open transaction, or may be
read again by a job (`holds`). Readers and writers continue meanwhile. First all keys are read. Then each group of neighbors is written
aside and put in place, front to back, so that a tombstone is never removed before the records that it hides. A tombstone stays for
`delete.retention.ms` after the compaction that first met it: a reader that saw the record has that long to see its deletion. Records of
aborted transactions are dropped; those of committed ones become plain. The history of writers is not in these frames alone: each later
segment has it in its `.writers` file, and `.learned` keeps a copy next to the compacted segment, for a repair.

Memory: `KEY_MEMORY` of keys (see `latest`), one bit for each record, and a few record batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.files import frame as frames
from headrace.log.files.cursor import ABORTED, COMMITTED, OPEN, Outcomes
from headrace.log.files.frame import HEADER, Frame
from headrace.log.files.partition import Partition
from headrace.log.files.segment import MERGING, WRITERS_SUFFIX, Segment, Start, segment_path
from headrace.log.files.segment_writer import SegmentWriter
from headrace.log.upkeep.latest import KEY_MEMORY, Keys, LatestRecords, key_columns, latest_by_key
from headrace.log.upkeep.retention import LEARNED_SUFFIX, remove_segment
from headrace.log.upkeep.rewriting import Rewriter


@dataclass(frozen=True)
class Compacted:
    """The changes of a compaction, in closed segments."""

    records_removed: int = 0
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


class _Source(NamedTuple):
    """A segment to compact: its offsets, bytes, the bytes never compacted before, and its records (the first has the number `first`)."""

    base: int
    until: int
    size: int
    dirty: int
    records: int
    first: int
    expired: bool


class Compaction:
    """One compaction of one partition, called under its maintenance lock; with `until`, of segments that end at this offset or before."""

    def __init__(self, partition: Partition, outcomes: Outcomes | None, *, key_memory: int = KEY_MEMORY, until: int | None = None) -> None:
        self._partition = partition
        self._outcomes = outcomes
        self._key_memory = key_memory
        self._now = partition.clock.now()
        self._until = until
        self._decided: dict[tuple[int, int, int], str] = {}
        self._sources = self._eligible()

    @property
    def dirty_ratio(self) -> float:
        """The share of bytes that no compaction has seen, among those that one would work on."""
        return sum(source.dirty for source in self._sources) / max(1, sum(source.size for source in self._sources))

    def run(self) -> Compacted:
        """Compact. Readers and writers continue meanwhile."""
        count = sum(source.records for source in self._sources)
        marks = latest_by_key(self._keys, count, self._key_memory)
        groups = [group for group in self._groups(marks) if not self._finished(group, marks)]
        results = [self._rewrite(group, marks) for group in groups]
        return Compacted(
            records_removed=sum(removed for removed, _ in results),
            segments_before=sum(map(len, groups)),
            segments_after=len(groups),
            bytes_before=sum(source.size for group in groups for source in group),
            bytes_after=sum(size for _, size in results),
        )

    def _eligible(self) -> list[_Source]:
        state = self._partition.state()
        bases = self._partition.segments(state)
        oldest = self._now - self._partition.topic.config.min_compaction_lag_ms * 1000
        sources: list[_Source] = []
        first = 0
        for base, until in itertools.pairwise(bases):
            if self._until is not None and until > self._until:
                break
            segment = self._segment(base)
            segment.check_end(self._segment(until))
            entries = segment.index(segment.size)
            dirty = entries[(entries["flags"] & frames.OFFSETS) == 0]
            in_transaction = (entries["flags"] & frames.TRANSACTIONAL) != 0
            outcomes = [self._outcome(segment.frame_at(int(place), segment.size)) for place in entries["position"][in_transaction]]
            if (dirty["appended_at"] > oldest).any() or OPEN in outcomes:
                break
            aborted = np.array([outcome == ABORTED for outcome in outcomes], dtype=bool)
            records = int(entries["count"].sum()) - int(entries["count"][in_transaction][aborted].sum())
            new = int((-(-dirty["length"].astype(np.int64) // frames.ALIGNMENT) * frames.ALIGNMENT + HEADER).sum())
            sources.append(_Source(base, until, segment.size, new, records, first, self._has_expired(entries)))
            first += records
        return sources

    def _outcome(self, frame: Frame) -> str:
        if not frame.flags & frames.TRANSACTIONAL or self._outcomes is None:
            return COMMITTED
        identity = (frame.writer, frame.generation, frame.transaction)
        if identity not in self._decided:
            self._decided[identity] = self._outcomes.of(frame)
        return self._decided[identity]

    def _has_expired(self, entries: np.ndarray) -> bool:
        met = entries["appended_at"][(entries["flags"] & (frames.OFFSETS | frames.TOMBSTONES)) == frames.OFFSETS | frames.TOMBSTONES]
        return bool((met < self._horizon).any())

    @property
    def _horizon(self) -> int:
        return self._now - self._partition.topic.config.delete_retention_ms * 1000

    def _live(self, segment: Segment) -> Iterator[Frame]:
        """The frames with records that took effect."""
        position, end = segment.first, segment.size
        while position < end:
            frame = segment.frame_at(position, end)
            if frame.count and self._outcome(frame) != ABORTED:
                yield frame
            position = frame.end

    def _keys(self) -> Iterator[Keys]:
        for source in self._sources:
            segment, number = self._segment(source.base), source.first
            for frame in self._live(segment):
                yield number, key_columns(self._partition.layout, segment.records(frame))
                number += frame.count

    def _groups(self, marks: LatestRecords) -> Iterator[list[_Source]]:
        """Neighbors that together fit into one segment once they are compacted."""
        group: list[_Source] = []
        total = 0.0
        for source in self._sources:
            kept = int(np.count_nonzero(marks.between(source.first, source.first + source.records)))
            size = source.size * kept / max(1, source.records)
            if group and total + size > self._partition.topic.config.segment_bytes:
                yield group
                group, total = [], 0.0
            group.append(source)
            total += size
        if group:
            yield group

    def _finished(self, group: list[_Source], marks: LatestRecords) -> bool:
        """Whether compaction would change nothing."""
        source = group[0]
        if len(group) > 1 or source.dirty or source.expired:
            return False
        return bool(marks.between(source.first, source.first + source.records).all())

    def _rewrite(self, group: list[_Source], marks: LatestRecords) -> tuple[int, int]:
        """Write a group as one segment and put it in place; returns the number of removed records, and the bytes that stay."""
        partition = self._partition
        columns = self._segment(group[-1].base).columns
        first = self._segment(group[0].base).start
        start = Start(first.base, first.follows, group[-1].until, columns, first.latest)
        output = SegmentWriter(partition.disk, partition.directory, start)
        rewriter = Rewriter(partition, output, columns, group[0].base)
        try:
            for source in group:
                segment, number = self._segment(source.base), source.first
                for frame in self._live(segment):
                    stored = segment.records(frame)
                    kept = marks.between(number, number + frame.count) & self._readable(frame, stored)
                    rewriter.add(frame, stored, kept, self._met_at(frame))
                    number += frame.count
            rewriter.finish(group[-1].until)
            self._learned(group)
        except BaseException:
            output.discard()
            raise
        self._switch(group, output)
        return sum(source.records for source in group) - rewriter.records, output.size

    def _met_at(self, frame: Frame) -> int:
        """The time at which a compaction first saw these records: now, or the time recorded in a compacted frame."""
        return frame.appended_at if frame.flags & frames.OFFSETS else self._now

    def _readable(self, frame: Frame, stored: pa.RecordBatch) -> np.ndarray:
        """Neither deleted nor a tombstone that has been there long enough."""
        readable = np.asarray(self._partition.layout.offsets(frame, stored) >= self._partition.state().start)
        if frame.flags & frames.TOMBSTONES and self._met_at(frame) < self._horizon:
            readable &= ~pc.fill_null(stored.column("_tombstone"), False).to_numpy(zero_copy_only=False)
        return readable

    def _learned(self, group: list[_Source]) -> None:
        partition = self._partition
        path = segment_path(partition.directory, group[-1].until).with_suffix(WRITERS_SUFFIX)
        if partition.disk.exists(path):
            learned = segment_path(partition.directory, group[0].base).with_suffix(LEARNED_SUFFIX)
            partition.disk.replace(learned, partition.disk.read(path))

    def _switch(self, group: list[_Source], output: SegmentWriter) -> None:
        partition = self._partition
        if len(group) > 1:
            partition.disk.replace(partition.directory / MERGING, b"")
        output.take_place()
        for source in group[1:]:
            remove_segment(partition, source.base)
        if len(group) > 1:
            partition.disk.sync_directory(partition.directory)
            partition.disk.remove(partition.directory / MERGING)
        with partition.exclusive() as (state, head):
            head.store(state._replace(layout=state.layout + 1))

    def _segment(self, base: int) -> Segment:
        return Segment(self._partition.disk, self._partition.directory, base)
