"""Repair of a damaged partition: damaged records are given up so that the others can be read and written again.

The damaged files stay in place as `*.corrupt`. Offsets of given-up records are never used for others. An open transaction or an append that
lost some of its batches keeps the rest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.log.errors import CorruptLog
from headrace.log.files import frame as frames
from headrace.log.files.durable_number import RESERVED, START, load_number, store_number
from headrace.log.files.examination import Examined, Piece, examine
from headrace.log.files.head import PartitionState
from headrace.log.files.layout import stored_schema
from headrace.log.files.partition import Partition
from headrace.log.files.segment import WRITERS_SUFFIX, Segment, Start, segment_bases, segment_path, start_block
from headrace.log.files.segment_writer import SegmentWriter
from headrace.log.files.writers import Writers
from headrace.log.upkeep.maintenance import maintenance_lock
from headrace.log.upkeep.retention import LEARNED_SUFFIX

_COPY = 16 * 1024 * 1024
# The most records that a byte of a batch may stand for if nothing else is known: offsets are plenty, and must not be used twice.
_RECORDS_IN_A_BYTE = 65_536


@dataclass(frozen=True)
class RepairReport:
    """The given-up records: their offsets `lost`, and the damaged files as they were, `kept`. `notes` say what else the user should
    know."""

    topic: str
    partition: int
    lost: tuple[range, ...] = ()
    kept: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def repair(partition: Partition) -> RepairReport:
    """Make a damaged partition usable; one that is not damaged stays as it is."""
    mender = _Mender(partition)
    with maintenance_lock(partition):
        partition.mend(mender.run)
    lost = [gap for gap in mender.lost if len(gap)]
    return RepairReport(partition.topic.name, partition.index, tuple(lost), tuple(mender.kept), tuple(mender.notes))


class _Mender:
    """One repair, under all locks of the partition."""

    def __init__(self, partition: Partition) -> None:
        self._disk = partition.disk
        self._directory = partition.directory
        self._topic = partition.topic
        self._now = partition.clock.now()
        self.lost: list[range] = []
        self.kept: list[Path] = []
        self.notes: list[str] = []

    def run(self, stale: PartitionState | None) -> PartitionState | None:
        """Repair the files; returns the last known state, as far as it is still valid."""
        reserved = self._mend_marks(stale)
        found = self._examined(stale)
        for segment, later in itertools.pairwise(found):
            _compare(segment, later)
        for place, segment in enumerate(found):
            if segment.damaged:
                before, behind = found[:place], found[place + 1 :]
                self._choose_columns(segment, before, behind)
                if segment.follows is None:
                    segment.follows = before[-1].end if before else segment.base
                if behind:
                    self._lose(segment, behind[0].base)
                    self._rewrite(segment, behind[0])
        following = self._mend_end(found, stale, reserved)
        self._mend_writers(found)
        return stale._replace(visible=max(stale.visible, following)) if stale is not None else None

    def _mend_marks(self, stale: PartitionState | None) -> int:
        """The numbers in files of their own; returns the offset below which readers may have seen everything."""
        known = {START: stale.start if stale else 0, RESERVED: max(stale.reserved, stale.written) if stale else 0}
        for name, number in known.items():
            path = self._directory / name
            try:
                load_number(self._disk, path)
            except CorruptLog:
                self._keep(path)
                store_number(self._disk, path, number)
                if stale is None:
                    self.notes.append(f"{name} is no longer known: " + _FORGOTTEN[name])
        return load_number(self._disk, self._directory / RESERVED)

    def _examined(self, stale: PartitionState | None) -> list[Examined]:
        """Every valid segment; the active one ends at the position in the head, or where its own recovery finds its end."""
        bases = segment_bases(self._disk.list(self._directory))
        found: list[Examined] = []
        covered = 0
        for base in bases:
            if base >= covered:
                end = self._end(base, stale) if base == bases[-1] else None
                found.append(examine(self._disk, self._directory, base, end))
                covered = found[-1].covers
                if found[-1].columns is None and self._only_a_start(base):
                    found[-1].unknown = 0
        return found

    def _only_a_start(self, base: int) -> bool:
        """Whether a segment is only as long as its first block, so that it never had a record."""
        columns = [pa.schema(list(self._topic.columns)[:count]) for count in range(1, len(self._topic.columns) + 1)]
        return self._disk.size(segment_path(self._directory, base)) in {
            len(start_block(Start(base, base, base, some, 0))) for some in columns
        }

    def _end(self, base: int, stale: PartitionState | None) -> int:
        if stale is not None and stale.segment == base:
            return stale.position
        try:
            return Segment(self._disk, self._directory, base).recover()
        except CorruptLog:
            return self._disk.size(segment_path(self._directory, base))

    def _choose_columns(self, segment: Examined, before: list[Examined], behind: list[Examined]) -> None:
        """Columns for a segment whose first block is damaged: those under which all of it can be read, if only one set qualifies."""
        if segment.columns is not None:
            return
        sound = [other.columns for other in before if other.columns is not None]
        later = [other.columns for other in behind if other.columns is not None]
        fewest, most = len(sound[-1]) if sound else 1, len(later[0]) if later else len(self._topic.columns)
        candidates = [pa.schema(list(self._topic.columns)[:count]) for count in range(fewest, most + 1)]
        fitting = [columns for columns in candidates if _readable(segment, columns)]
        if len(fitting) == 1 or not segment.pieces:
            segment.columns = fitting[-1]
            segment.covers = segment.next if segment.compacted else segment.base
            return
        self.notes.append(f"segment {segment.base}: its columns are not known, so all its records are given up")
        segment.lost = [range(segment.base, segment.next)]
        segment.columns, segment.pieces = self._topic.columns, []

    def _lose(self, segment: Examined, until: int) -> None:
        """Record the lost offsets, up to the one after the segment if its own end is unknown."""
        self.lost += segment.lost
        if segment.unknown:
            self.lost.append(range(segment.next, until))

    def _rewrite(self, segment: Examined, following: Examined | None = None) -> None:
        """Replace a segment by its sound batches, with no gap up to the beginning of the following one."""
        assert segment.columns is not None
        assert segment.follows is not None
        self._keep(segment_path(self._directory, segment.base))
        if following is not None and segment.covers > segment.base:
            segment.covers = following.base
        start = Start(segment.base, segment.follows, segment.covers, segment.columns, segment.latest)
        output = SegmentWriter(self._disk, self._directory, start)
        until = _reach(segment, following) if following is not None else None
        if until is not None and until > segment.end:
            segment.pieces.append(Piece(*frames.gap(segment.end, until, frames.OFFSETS if segment.covers > segment.base else 0)))
        for frame, body in segment.pieces:
            output.add(frame._replace(flags=frame.flags & ~frames.MORE), body)
        output.take_place()

    def _mend_end(self, found: list[Examined], stale: PartitionState | None, reserved: int) -> int:
        """Close a damaged active segment and begin a new one after every offset that was ever assigned; returns that offset."""
        last = found[-1] if found else Examined(base=0, damaged=True, columns=self._topic.columns)
        following = max(last.next, stale.written if stale else reserved)
        missing = not found or (stale is not None and stale.segment > last.base)
        if not missing and not last.damaged:
            return following
        if stale is None and last.unknown:
            following = max(following, last.next + last.unknown * _RECORDS_IN_A_BYTE)
            self.notes.append(f"the number of records lost at the end is not known: offsets continue at {following}")
        self._lose(last, following)
        if missing:
            self.lost.append(range(last.next, following))
        elif last.damaged:
            self._rewrite(last)
        if missing or following > last.base:
            self._store_writers(following, self._learned(found)[0])
            Segment.create(self._disk, self._directory, Start(following, last.end, following, self._topic.columns, frames.ANY_TIME))
            found.append(Examined(following, self._topic.columns, following, last.end, following))
        return following

    def _mend_writers(self, found: list[Examined]) -> None:
        """The writers known at the beginning of the active segment, from earlier segments if its own file is damaged."""
        path = segment_path(self._directory, found[-1].base).with_suffix(WRITERS_SUFFIX)
        if self._disk.exists(path) and self._unpacked(path) is None:
            self._keep(path)
            known, complete = self._learned(found[:-1])
            self._store_writers(found[-1].base, known)
            if not complete:
                self.notes.append("the last append of some writers is no longer known: if they repeat it, it may be stored twice")

    def _learned(self, found: list[Examined]) -> tuple[Writers, bool]:
        """The writers as of the end of some segments, and whether that is complete."""
        later: list[Examined] = []
        for segment in reversed(found):
            path = segment_path(self._directory, segment.base)
            known = self._unpacked(path.with_suffix(LEARNED_SUFFIX)) if segment.compacted or not segment.headers else None
            if known is None:
                later.insert(0, segment)
                known = self._unpacked(path.with_suffix(WRITERS_SUFFIX)) if not segment.compacted else None
            if known is None and segment.base == 0 and not segment.compacted:
                known = Writers()
            if known is not None:
                return _taught(known, later), True
        return _taught(Writers(), later), not found

    def _unpacked(self, path: Path) -> Writers | None:
        try:
            return Writers.unpack(self._disk.read(path), str(path)) if self._disk.exists(path) else None
        except CorruptLog:
            return None

    def _store_writers(self, base: int, known: Writers) -> None:
        self._disk.replace(segment_path(self._directory, base).with_suffix(WRITERS_SUFFIX), known.pack(self._now))

    def _keep(self, path: Path) -> None:
        """Copy a damaged file next to itself, durably."""
        copy, number = path.with_name(f"{path.name}.corrupt"), 1
        while self._disk.exists(copy):
            number += 1
            copy = path.with_name(f"{path.name}.corrupt{number}")
        source, target = self._disk.open(path), self._disk.open(copy, create=True)
        try:
            for position in range(0, source.size(), _COPY):
                target.write([source.read(position, _COPY)], position)
            target.sync()
        finally:
            source.close()
            target.close()
        self._disk.sync_directory(self._directory)
        self.kept.append(copy)


_FORGOTTEN = {
    START: "records deleted before may be readable again",
    RESERVED: "offsets that readers saw before they were durable may be used again after a power cut",
}


def _reach(segment: Examined, following: Examined) -> int | None:
    """The offset up to which a closed segment must have frames; None if that is not known."""
    return following.base if segment.covers > segment.base else following.follows


def _compare(segment: Examined, following: Examined) -> None:
    """Find frames that are missing at the end of a segment without a trace, or a segment that is missing after it."""
    reach = _reach(segment, following)
    if not segment.damaged and reach is not None and segment.next < reach:
        segment.damaged = True
        segment.lost.append(range(segment.next, reach))
        segment.next = reach


def _readable(segment: Examined, columns: pa.Schema) -> bool:
    """Whether these are the columns of all batches: read with fewer, a batch would lose columns when it is written again."""
    try:
        batches = [
            (frame, frames.decode(frame, body, stored_schema(columns, frame.flags & 255))) for frame, body in segment.pieces if frame.count
        ]
        for _, batch in batches:
            batch.validate(full=True)
    except (pa.ArrowInvalid, OSError):
        return False
    return all(batch.serialize().size == frame.raw_length for frame, batch in batches)


def _taught(known: Writers, segments: list[Examined]) -> Writers:
    for segment in segments:
        known.learn(np.frombuffer(b"".join(frame.pack() for frame in segment.headers), dtype=frames.INDEX))
    return known
