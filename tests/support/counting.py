"""A disk that counts what is asked of it: costs are asserted in operations and bytes, not in seconds."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headrace.core.files.disk import Bytes, PosixDisk, PosixFile


class CountingFile(PosixFile):
    """A file of a counting disk."""

    def __init__(self, path: Path, disk: "CountingDisk", *, create: bool) -> None:
        super().__init__(path, create=create)
        self._counts = disk.counts
        self._durable = disk.durable

    def write(self, parts: Sequence[Bytes], position: int) -> None:
        self._counts["write"] += 1
        self._counts["bytes written"] += sum(len(memoryview(part).cast("B")) for part in parts)
        super().write(parts, position)

    def read(self, position: int, length: int) -> bytes:
        data = super().read(position, length)
        self._counts["read"] += 1
        self._counts["bytes read"] += len(data)
        return data

    def map(self, room: int = 0) -> pa.Buffer:
        self._counts["map"] += 1
        return super().map(room)

    def sync(self) -> None:
        self._counts["sync"] += 1
        if self._durable:
            super().sync()


class CountingDisk(PosixDisk):
    """The machine's disk, with `counts` of operations by name. With `durable=False` syncs are counted and left out."""

    def __init__(self, *, durable: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        self.durable = durable

    def open(self, path: Path, *, create: bool = False) -> PosixFile:
        self.counts["open"] += 1
        return CountingFile(path, self, create=create)

    def read(self, path: Path) -> bytes:
        data = super().read(path)
        self.counts["read"] += 1
        self.counts["bytes read"] += len(data)
        return data

    def sync_directory(self, path: Path) -> None:
        self.counts["sync directory"] += 1
        if self.durable:
            super().sync_directory(path)

    def list(self, directory: Path) -> list[str]:
        self.counts["list"] += 1
        return super().list(directory)

    def taken(self) -> Counter[str]:
        """The counts since the last call."""
        counts = self.counts.copy()
        self.counts.clear()
        return counts
