"""A segment: one append-only file of frames with the schema they were written under, and its index."""

from __future__ import annotations

import errno
import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.core.files.disk import Disk
from headrace.log.errors import CorruptLog
from headrace.log.files import frame as frames
from headrace.log.files.checksum import checksum
from headrace.log.files.frame import HEADER, Frame
from headrace.log.files.layout import stored_schema
from headrace.log.files.lookup import Lookup

SUFFIX, INDEX_SUFFIX, WRITERS_SUFFIX = ".segment", ".index", ".writers"
# This file exists while segments that were merged into another are being removed.
MERGING = "merging"
_MAGIC = 0x33535248  # "HRS3"
_START = struct.Struct("<IIqqqqI")
_ROOM = 1024 * 1024
_LAST = 2**63 - 1


class Start(NamedTuple):
    """The content of the first block of a segment.

    `follows` is the offset after the last frame of the previous segment; it is below `base` where a crash left offsets unused. `covers` is
    the offset up to which a compacted segment represents all segments, and which its frames reach; `base` in others. `latest`: no record of
    an earlier segment has a later event time.
    """

    base: int
    follows: int
    covers: int
    columns: pa.Schema
    latest: int


class Segment:
    """The frames from offset `base` on. Keeps a map of the file and no descriptor, so that there may be any number of them.

    The length of the file is checked before each access to the map: reading bytes that were cut off would end the process. Two cases
    remain: a cut between the check and the access, and a cut below a batch that a reader already has.
    """

    def __init__(self, disk: Disk, directory: Path, base: int) -> None:
        self.base = base
        self.path = segment_path(directory, base)
        self.index_path = segment_path(directory, base, INDEX_SUFFIX)
        self._disk = disk
        self._identity = self._known = 0
        self._map = self._mapped()
        self.start, self.first = self._read_start()
        self.columns, self.covers = self.start.columns, self.start.covers
        self._index: np.ndarray | None = None

    @classmethod
    def create(cls, disk: Disk, directory: Path, start: Start) -> Segment:
        """A new, empty segment; durable with its directory entry when this returns."""
        index = disk.open(segment_path(directory, start.base, INDEX_SUFFIX), create=True)
        index.truncate(0)
        index.close()
        # Complete before it has its name: no crash leaves a segment without its first block, and readers of a replaced segment keep their
        # file.
        disk.replace(segment_path(directory, start.base), start_block(start))
        return cls(disk, directory, start.base)

    def view(self, end: int) -> pa.Buffer:
        """The file's bytes up to its present end, or at least to `end`; FileNotFoundError if another file replaced it before that."""
        size = self.size
        if self._map.size < min(size, end):
            self._map = self._mapped()
        elif size < end and not self._present():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        return self._map.slice(0, min(size, self._map.size))

    @property
    def size(self) -> int:
        """The length of the file; if it no longer exists, its last known length, which no longer changes."""
        self._present()
        return self._known

    def frame_at(self, position: int, end: int) -> Frame:
        """The header at `position`, in a range that was written completely; anything else is corruption."""
        data = self.view(end)
        frame = frames.unpack(data.slice(position, HEADER).to_pybytes(), position) if position + HEADER <= data.size else None
        if frame is None or frame.end > data.size:
            raise self.corrupt(
                position, "the header of a record batch does not match its checksum" if position < data.size else "the file ends too early"
            )
        return frame

    def records(self, frame: Frame) -> pa.RecordBatch:
        """The stored batch of a frame, checked against its CRC; shares the file's memory if it is not compressed."""
        data = self.view(frame.end)
        if data.size < frame.end:
            raise self.corrupt(frame.position, "the file ends too early", frame)
        body = data.slice(frame.position + HEADER, frame.length)
        if not frames.sound(frame, body):
            raise self.corrupt(frame.position, f"the records from offset {frame.base} to {frame.next - 1} do not match their CRC32C", frame)
        return frames.decode(frame, body, stored_schema(self.columns, frame.flags & 255))

    def index(self, end: int) -> np.ndarray:
        """The headers of all frames before position `end`, from the index file, or from the segment if the index is not sound."""
        if self._index is not None and len(self._index) and self._end_of(self._index) == end:
            return self._index
        found = self._load_index(end)
        self._index = found if found is not None else self.scan_index(end)
        return self._index

    def entries(self, first: int, last: int, end: int) -> np.ndarray:
        """The headers of the frames before position `end`: the first one with `first` or a later offset, and more up to `last`.

        Reads no more of the index than that, if it is sound.
        """
        found = self._looked_up(first, last, end)
        if found is not None:
            return found[1]
        entries = self.index(end)
        place = int(np.searchsorted(entries["next"], first, side="right"))
        return entries[place : max(int(np.searchsorted(entries["base"], last)), place + 1)]

    def position_of(self, offset: int, end: int) -> int:
        """The position of the first frame with `offset` or a later one; `end` if there is none before it."""
        if offset <= self.base:
            return self.first
        entries = self.entries(offset, offset, end)
        return int(entries["position"][0]) if len(entries) else end

    def scan_index(self, end: int) -> np.ndarray:
        """The index as computed from the segment itself."""
        headers, position = [], self.first
        while position < end:
            frame = self.frame_at(position, end)
            headers.append(frame.pack())
            position = frame.end
        return np.frombuffer(b"".join(headers), dtype=frames.INDEX)

    def check_end(self, following: Segment) -> None:
        """Raise if frames are missing at the end of this closed segment, or a segment between it and the following one."""
        size = self.size
        end = self._end_offset(size)
        if self.covers > self.base:
            whole = end == self.covers and end in (following.base, following.start.follows)
        else:
            whole = end == following.start.follows
        if not whole:
            raise self.corrupt(size, f"the records from offset {end} on are missing, and the next segment begins at {following.base}")

    def recover(self, proved: int = 0) -> int:
        """The end of the complete appends of this segment. A torn tail ends it; damage to durable bytes raises.

        Up to the position `proved` the segment is known to have been durable.
        """
        data = self.view(self.size)
        position = complete = self.first
        while position < data.size:
            frame = self.sound_frame(position, data.size)
            if frame is None:
                if not self._torn(data, position, proved):
                    raise self.corrupt(position, "a record batch that was written completely does not match its checksum")
                break
            position = frame.end
            if not frame.flags & frames.MORE:
                complete = position
        return complete

    def sound_frame(self, position: int, end: int) -> Frame | None:
        """The header at `position`, or None if it or its records are damaged, or extend past `end`."""
        data = self.view(end)
        frame = frames.unpack(data.slice(position, min(HEADER, data.size - position)).to_pybytes(), position)
        if frame is None or frame.end > end or not frames.sound(frame, data.slice(position + HEADER, frame.length)):
            return None
        return frame

    def corrupt(self, position: int, what: str, frame: Frame | None = None) -> CorruptLog:
        offsets = f", offset {frame.base}" if frame else ""
        return CorruptLog(
            f"{self.path}, position {position}{offsets}: {what}",
            why="these records would be wrong, so they are not served",
            hint="restore the file from a copy, or give up the damaged records with log.repair(topic, partition)",
        )

    def _torn(self, data: pa.Buffer, position: int, proved: int) -> bool:
        """Whether damage at `position` is an append that a crash cut short, and not a change to bytes that were complete.

        Cut short means that the file ends inside it, or that one of its sectors never reached the disk: its header is missing with the
        sector that it begins or ends in, or its records have more blank sectors than the header records. A flipped bit is taken for a torn
        append only under two conditions: it cleared the last set bit of a sector, and nothing proves that the append was durable. The head
        proves it, and so does a later batch, which records up to where the file was durable when it was written.
        """
        frame = frames.unpack(data.slice(position, min(HEADER, data.size - position)).to_pybytes(), position)
        if position + HEADER > data.size or (frame is not None and frame.end > data.size):
            return True
        if position < proved or self._proved_durable(data, position):
            return False
        if frame is not None:
            return frames.blank_sectors(data.slice(position + HEADER, frame.length), position) > frame.blank
        middle = -(-(position + 1) // frames.SECTOR) * frames.SECTOR
        pieces = [data.slice(position, min(middle, data.size) - position)]
        if middle < position + HEADER:
            pieces.append(data.slice(middle, min(frames.SECTOR, data.size - middle)))
        return any(not piece.to_pybytes().strip(b"\0") for piece in pieces)

    def _proved_durable(self, data: pa.Buffer, position: int) -> bool:
        """Whether a batch after `position` proves that the one there was durable."""
        words = np.frombuffer(data, dtype="<u4", count=data.size // 4)[:: frames.ALIGNMENT // 4]
        for place in (np.flatnonzero(words == frames.MAGIC) * frames.ALIGNMENT).tolist():
            later = frames.unpack(data.slice(place, min(HEADER, data.size - place)).to_pybytes(), place)
            if later is not None and later.position > position and later.durable > position:
                return True
        return False

    def _present(self) -> bool:
        """Whether the mapped file still has its name; if so, its length is recorded. A map keeps the file's inode number from being
        reused."""
        try:
            identity, size = self._disk.extent(self.path)
        except FileNotFoundError:
            return False
        if identity == self._identity:
            self._known = size
        return identity == self._identity

    def _mapped(self) -> pa.Buffer:
        file = self._disk.open(self.path)
        try:
            identity, size = file.extent()
            if self._identity not in (0, identity):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
            self._identity, self._known = identity, size
            # A growing segment is not mapped again for every append.
            return file.map(max(_ROOM, 2 * size))
        finally:
            file.close()

    def _load_index(self, end: int) -> np.ndarray | None:
        try:
            # Copied: writers cut off what a crash left at its end.
            data = self._disk.read(self.index_path)
        except FileNotFoundError:
            return None
        entries = frames.checked_index(data[: len(data) // HEADER * HEADER])
        if entries is None:
            return None
        entries = entries[: np.searchsorted(entries["position"], end)]
        if not len(entries):
            return entries if end == self.first else None
        if self._end_of(entries) != end or not frames.chained(entries, self.first):
            return None
        # Compaction replaces a segment and then its index: one of them may be the older.
        own = self.frame_at(int(entries["position"][-1]), end).pack() == entries[-1:].tobytes()
        return entries if own else None

    def _looked_up(self, first: int, last: int, end: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The result of a search in the index file: the entry before, if there is one, and the requested ones. None if they do not match
        the segment."""
        try:
            file = self._disk.open(self.index_path)
        except FileNotFoundError:
            return None
        try:
            lookup = Lookup(file, end)
            place = lookup.place_of(first)
            found = lookup.run(max(place - 1, 0), min(place, 1) + 1, last)
        finally:
            file.close()
        if not frames.chained(found, self.first if place <= 1 or not len(found) else int(found["position"][0])):
            return None
        front, behind = found[: min(place, 1)], found[min(place, 1) :]
        wanted = behind[: max(int(np.searchsorted(behind["base"], last)), 1)]
        whole = (len(behind) and behind["base"][-1] >= last) or (self._end_of(found) if len(found) else self.first) == end
        return (front, wanted) if whole and self._has(wanted if len(wanted) else front, end) else None

    def _has(self, entries: np.ndarray, end: int) -> bool:
        """Whether the first and the last of these headers are in the segment: when compaction replaces it, its index may be older."""
        data = self.view(end)
        for entry in (entries[:1], entries[-1:]) if len(entries) else ():
            position = int(entry["position"][0])
            if position + HEADER > data.size or data.slice(position, HEADER).to_pybytes() != entry.tobytes():
                return False
        return True

    def _end_offset(self, size: int) -> int:
        """The offset after the last frame of the whole file."""
        found = self._looked_up(_LAST, _LAST, size)
        entries = found[0] if found is not None else self.index(size)
        return int(entries["next"][-1]) if len(entries) else self.base

    def _end_of(self, entries: np.ndarray) -> int:
        return int(entries["position"][-1]) + HEADER + frames.padded(int(entries["length"][-1]))

    def _read_start(self) -> tuple[Start, int]:
        data = self.view(0)
        try:
            magic, crc, *numbers, length = _START.unpack_from(data)
            base, follows, covers, latest = numbers
            columns = data.slice(_START.size, length).to_pybytes()
            sound = checksum(_checked(numbers, columns)) == crc
        except (struct.error, IndexError, pa.ArrowInvalid):
            sound = False
        if not sound or magic != _MAGIC or base != self.base:
            raise self.corrupt(0, "the start of the segment does not match its checksum")
        return Start(base, follows, covers, _schema(columns), latest), frames.padded(_START.size + length)


@lru_cache(maxsize=256)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


@lru_cache(maxsize=4096)
def segment_path(directory: Path, base: int, suffix: str = SUFFIX) -> Path:
    """The file of a segment, or another one that belongs to it."""
    return directory / f"{base:020d}{suffix}"


def start_block(start: Start) -> bytes:
    """The first block of a segment file."""
    schema: bytes = start.columns.serialize().to_pybytes()
    numbers = [start.base, start.follows, start.covers, start.latest]
    block = _START.pack(_MAGIC, checksum(_checked(numbers, schema)), *numbers, len(schema)) + schema
    return block.ljust(frames.padded(len(block)), b"\0")


def _checked(numbers: list[int], schema: bytes) -> bytes:
    return struct.pack("<qqqqI", *numbers, len(schema)) + schema


def without_merged(disk: Disk, directory: Path, bases: list[int]) -> list[int]:
    """The valid segments: without those that an earlier one represents and that a crash kept from being removed."""
    kept: list[int] = []
    covered = 0
    for base in bases:
        if base >= covered:
            kept.append(base)
            covered = Segment(disk, directory, base).covers
    return kept


def segment_bases(names: list[str]) -> list[int]:
    """The base offsets of the segments among file names, in order."""
    return sorted([int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX) and name[0] != "."])
