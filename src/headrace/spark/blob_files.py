"""Large blobs of state in files beside Spark's state store, which takes ten times as long for a megabyte as a file does.

A file is written once. Its name says which epoch wrote it, how large it is and what its checksum is: like the rest of a checkpoint it is
not synced, and this is how a torn one is told. Which files a state stands on, Spark's store says; a state as of an earlier epoch may
stand on others, so none is removed before Spark has let go of those.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from headrace.core import failpoints
from headrace.core.errors import JobError

# Where they are in a checkpoint.
BLOBS = "blobs"
# Spark keeps the state as of at least 100 epochs (spark.sql.streaming.minBatchesToRetain), to which a repair may go back.
GRACE = 128
_NAME = re.compile(r"(?P<epoch>\d+)-[0-9a-f]{8}-(?P<size>\d+)-(?P<checksum>[0-9a-f]{8})")


class BlobFile(NamedTuple):
    """A file as its name says that it must be."""

    path: Path
    epoch: int
    size: int
    checksum: int

    def whole(self, *, thorough: bool) -> bool:
        """Whether it is that, by its size or, thoroughly, by its content."""
        try:
            return self.path.stat().st_size == self.size and not (thorough and _checksum(self.path.read_bytes()) != self.checksum)
        except FileNotFoundError:
            return False


class BlobFiles:
    """The files of one shard of a level."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, epoch: int, blob: bytes) -> str:
        """Put a blob into a file that an epoch is to stand on; gives its name."""
        name = f"{epoch}-{secrets.token_hex(4)}-{len(blob)}-{_checksum(blob):08x}"
        path = self._directory / name
        # Whole or not there, however this process ends.
        fresh = path.with_suffix(".new")
        try:
            self._fill(fresh, blob)
        except FileNotFoundError:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._fill(fresh, blob)
        failpoints.reach("state.file.before")
        fresh.rename(path)
        failpoints.reach("state.file.after")
        return name

    def read(self, name: str) -> bytes:
        """What a file has. Raises if that is not what was written."""
        path = self._directory / name
        file = _named(path)
        blob = path.read_bytes() if path.exists() else None
        if blob is not None and file is not None and (len(blob), _checksum(blob)) == (file.size, file.checksum):
            return blob
        if blob is None:
            # A repair looks at the files that are there: this one is to be seen as torn.
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        raise JobError(
            f"the state stands on {path}, which is {'missing' if blob is None else 'torn'}",
            why="Spark and Headrace do not sync the files of a checkpoint: a power cut can take them away",
            hint="headrace repair app.py goes back to the last epoch whose state is whole, or says why that cannot be",
        )

    def names(self) -> list[str]:
        """All of ours that are there, those too that were never finished; file systems put others beside them, as .nfs0001."""
        return [path.name for path in self._directory.glob("[0-9]*-*")]

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self._directory / name).unlink(missing_ok=True)

    @staticmethod
    def _fill(path: Path, blob: bytes) -> None:
        with path.open("wb", buffering=0) as opened:
            left = memoryview(blob)
            while left:
                left = left[opened.write(left) :]


def shard_files(place: Path, level: int, shard: int) -> BlobFiles:
    """The files of a shard of a level, below the place of all of a job."""
    return BlobFiles(place / str(level) / str(shard))


def written_by(name: str) -> int:
    """The epoch that wrote a file, or began to."""
    return int(name.partition("-")[0])


def all_files(place: Path) -> Iterator[BlobFile]:
    """Every file below the place of all of a job."""
    for path in place.glob("*/*/*"):
        found = _named(path)
        if found is not None:
            yield found


def _named(path: Path) -> BlobFile | None:
    said = _NAME.fullmatch(path.name)
    return None if said is None else BlobFile(path, int(said["epoch"]), int(said["size"]), int(said["checksum"], 16))


def _checksum(blob: bytes) -> int:
    found: int = google_crc32c.value(blob)
    return found
