"""A complete segment that is written aside and replaces the present one in a single step."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headrace.core.files.disk import Disk
from headrace.log.files import frame as frames
from headrace.log.files.frame import Frame
from headrace.log.files.segment import INDEX_SUFFIX, Start, segment_path, start_block

ASIDE = ".aside-"
_PADDING = bytes(frames.ALIGNMENT)


class SegmentWriter:
    """Frames in their order, for a segment that then represents all offsets that its start block names.

    A crash at any moment leaves the old segment or the new one; the next maintenance removes leftover files.
    """

    def __init__(self, disk: Disk, directory: Path, start: Start) -> None:
        self._disk = disk
        self._path = segment_path(directory, start.base)
        self._aside = directory / f"{ASIDE}{start.base:020d}"
        self._headers: list[bytes] = []
        self._file = disk.open(self._aside, create=True)
        self._file.truncate(0)
        block = start_block(start)
        self._file.write([block], 0)
        self.size = len(block)

    def add(self, frame: Frame, body: pa.Buffer) -> None:
        """Write a frame at the end; its position is set here."""
        # Everything before it is synced before any reader sees it.
        placed = frame._replace(position=self.size, durable=self.size)
        header = placed.pack()
        parts = [header, body, _PADDING[: frames.padded(body.size) - body.size]]
        self._file.write([part for part in parts if len(part)], self.size)
        self._headers.append(header)
        self.size = placed.end

    def take_place(self) -> None:
        """Make the segment durable and put it in place for readers. Its index follows; without one, readers scan."""
        self._file.sync()
        self._file.close()
        index_path = self._path.with_suffix(INDEX_SUFFIX)
        self._disk.remove(index_path)
        self._disk.rename(self._aside, self._path)
        index = self._disk.open(index_path, create=True)
        try:
            index.truncate(0)
            if self._headers:
                index.write([b"".join(self._headers)], 0)
        finally:
            index.close()

    def discard(self) -> None:
        """Discard the segment."""
        self._file.close()
        self._disk.remove(self._aside)
