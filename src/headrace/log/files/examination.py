"""Examination of a damaged segment file: each sound record batch, and the offsets of the others.

The header of a batch is stored twice, in the segment and in its index; either one gives the batch's place, and recovers the batch if its
records are sound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.core.files.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.files import frame as frames
from headrace.log.files.frame import HEADER, Frame
from headrace.log.files.segment import INDEX_SUFFIX, Segment, segment_path


class Piece(NamedTuple):
    """A sound record batch."""

    frame: Frame
    body: pa.Buffer


@dataclass
class Examined:
    """A segment file: `columns` and `follows` are None if its first block is damaged, `next` is the offset after its known part.

    `lost` are the offsets of damaged batches, `headers` those of all known ones, `unknown` the unreadable bytes at its end.
    """

    base: int
    columns: pa.Schema | None = None
    covers: int = 0
    follows: int | None = None
    latest: int = frames.ANY_TIME
    next: int = 0
    damaged: bool = False
    unknown: int = 0
    pieces: list[Piece] = field(default_factory=list)
    headers: list[Frame] = field(default_factory=list)
    lost: list[range] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset after its last sound batch."""
        return self.pieces[-1].frame.next if self.pieces else self.base

    @property
    def compacted(self) -> bool:
        return any(frame.flags & frames.OFFSETS for frame in self.headers)


def examine(disk: Disk, directory: Path, base: int, end: int | None = None) -> Examined:
    """Examine every byte of a segment up to the position `end`, by default up to its end according to the index."""
    found = Examined(base, covers=base, next=base)
    file = disk.open(segment_path(directory, base))
    try:
        data = file.map()
    finally:
        file.close()
    copies = _copies(disk, segment_path(directory, base).with_suffix(INDEX_SUFFIX))
    limit = max([data.size, *(frame.end for frame in copies.values())]) if end is None else end
    try:
        segment = Segment(disk, directory, base)
        found.columns, found.covers, position = segment.columns, segment.covers, segment.first
        found.follows, found.latest = segment.start.follows, segment.start.latest
    except CorruptLog:
        found.damaged = True
        position = 0
    while position < limit:
        following = _step(found, data.slice(0, min(limit, data.size)), position, copies)
        if following is None:
            found.unknown = limit - position
            break
        position = following
    found.damaged = found.damaged or bool(found.lost) or found.unknown > 0
    return found


def _step(found: Examined, data: pa.Buffer, position: int, copies: dict[int, Frame]) -> int | None:
    """Add the batch at `position`; returns the next position to examine, None if nothing is known from there on."""
    own = _header(data, position)
    frame = own or copies.get(position)
    if frame is None or frame.base < found.next:
        found.damaged = True
        place = min([*_headers_behind(data, position), *(place for place in copies if place > position)], default=None)
        if place is not None:
            _lose(found, _header(data, place) or copies[place])
        return place
    body = data.slice(position + HEADER, frame.length) if frame.end <= data.size else None
    found.headers.append(frame)
    found.damaged = found.damaged or own is None
    if body is not None and frames.sound(frame, body):
        found.pieces.append(Piece(frame, body))
    else:
        found.lost.append(range(frame.base, frame.next))
    found.next = frame.next
    return frame.end


def _lose(found: Examined, following: Frame) -> None:
    """Give up all unknown offsets before a frame."""
    if following.base > found.next:
        found.lost.append(range(found.next, following.base))
        found.next = following.base


def _header(data: pa.Buffer, position: int) -> Frame | None:
    return frames.unpack(data.slice(position, HEADER).to_pybytes(), position) if position + HEADER <= data.size else None


def _headers_behind(data: pa.Buffer, position: int) -> Iterator[int]:
    """The place of the first sound header after `position`, if there is one."""
    words = np.frombuffer(data, dtype="<u4", count=data.size // 4)[:: frames.ALIGNMENT // 4]
    places = np.flatnonzero(words == frames.MAGIC) * frames.ALIGNMENT
    yield from itertools.islice((place for place in places[places > position].tolist() if _header(data, place) is not None), 1)


def _copies(disk: Disk, path: Path) -> dict[int, Frame]:
    """The sound headers of an index file, by the position they were written for."""
    data = disk.read(path) if disk.exists(path) else b""
    rows = [data[at : at + HEADER] for at in range(0, len(data) // HEADER * HEADER, HEADER)]
    places = np.frombuffer(b"".join(rows), dtype=frames.INDEX)["position"].tolist()
    found = [(place, frames.unpack(row, place)) for place, row in zip(places, rows, strict=True)]
    return {place: frame for place, frame in found if frame is not None}
