"""The state of a job in files: those of one shard of a level are in a directory below the job's checkpoint.

A file is written once. Its name says which epoch wrote it, how large it is and what its checksum is: no task waits until it is on the
disk, and this is how one is told that a power cut tore. Most are blobs. The last that an epoch writes is a manifest, which says on which
blobs the state stands as of that epoch; if several attempts wrote one, that of the last attempt counts. Whether the epoch itself counts,
Spark's commit says: one without is done again, from the manifest of the epoch before it.
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
SHARDS = "shards"
# Spark keeps the offsets and commits of at least 100 epochs (spark.sql.streaming.minBatchesToRetain), to which a repair may go back.
GRACE = 128
_NAME = re.compile(
    r"(?P<epoch>\d+)-([0-9a-f]{8}|manifest-(?P<run>\d+)-(?P<task>\d+))-(?P<size>\d+)-(?P<checksum>[0-9a-f]{8})",
)


class Attempt(NamedTuple):
    """Who writes a manifest: the number of the job's run, and that of the task in it. A later one is greater."""

    run: int = 0
    task: int = 0


class ShardFile(NamedTuple):
    """A file as its name says that it must be."""

    path: Path
    epoch: int
    size: int
    checksum: int
    attempt: Attempt | None
    """Who wrote it, if it is a manifest."""

    def whole(self, *, thorough: bool) -> bool:
        """Whether it is that, by its size or, thoroughly, by its content."""
        try:
            return self.path.stat().st_size == self.size and not (thorough and _checksum(self.path.read_bytes()) != self.checksum)
        except FileNotFoundError:
            return False


class ShardFiles:
    """The files of one shard of a level."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, epoch: int, blob: bytes, attempt: Attempt | None = None) -> str:
        """Put a blob, or the manifest of an attempt, into a file that an epoch is to stand on; gives its name."""
        kind = secrets.token_hex(4) if attempt is None else f"manifest-{attempt.run}-{attempt.task}"
        name = f"{epoch}-{kind}-{len(blob)}-{_checksum(blob):08x}"
        # Whole or not there, however this process ends.
        fresh = self.directory / f"{name}.new"
        try:
            _fill(fresh, blob)
        except FileNotFoundError:
            self.directory.mkdir(parents=True, exist_ok=True)
            _fill(fresh, blob)
        failpoints.reach("state.file.before")
        fresh.rename(self.directory / name)
        failpoints.reach("state.file.after")
        return name

    def read(self, name: str) -> bytes:
        """What a file has. Raises if that is not what was written."""
        file = self.file(name)
        blob = file.path.read_bytes() if file.path.exists() else None
        if blob is None or (len(blob), _checksum(blob)) != (file.size, file.checksum):
            raise _damaged(f"the state stands on {file.path}, which is {'missing' if blob is None else 'torn'}")
        return blob

    def file(self, name: str) -> ShardFile:
        found = _named(self.directory / name)
        assert found is not None, f"{name} is not the name of a file of a shard"
        return found

    def manifest(self, epoch: int) -> ShardFile | None:
        """The manifest of an epoch: that of the last attempt."""
        found = [file for path in self.directory.glob(f"{epoch}-manifest-*") if (file := _named(path)) is not None]
        return max(found, key=lambda file: file.attempt or Attempt(), default=None)

    def needed_manifest(self, epoch: int) -> ShardFile:
        """The same, of an epoch that is done: it must be there."""
        found = self.manifest(epoch)
        if found is None:
            raise _damaged(f"the state as of epoch {epoch} is missing in {self.directory}")
        return found

    def names(self) -> list[str]:
        """All of ours that are there, those too that were never finished; file systems put others beside them, as .nfs0001."""
        return [path.name for path in self.directory.glob("[0-9]*-*")]

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.directory / name).unlink(missing_ok=True)


def shard_files(checkpoint: Path, level: int, shard: int) -> ShardFiles:
    """The files of a shard of a level, in the checkpoint of a job."""
    return ShardFiles(checkpoint / SHARDS / str(level) / str(shard))


def written_by(name: str) -> int:
    """The epoch that wrote a file, or began to."""
    return int(name.partition("-")[0])


def all_files(checkpoint: Path) -> Iterator[ShardFile]:
    """Every file of the state in the checkpoint of a job."""
    for path in (checkpoint / SHARDS).glob("*/*/*"):
        found = _named(path)
        if found is not None:
            yield found


def _named(path: Path) -> ShardFile | None:
    said = _NAME.fullmatch(path.name)
    if said is None:
        return None
    attempt = Attempt(int(said["run"]), int(said["task"])) if said["run"] else None
    return ShardFile(path, int(said["epoch"]), int(said["size"]), int(said["checksum"], 16), attempt)


def _fill(path: Path, blob: bytes) -> None:
    with path.open("wb", buffering=0) as opened:
        left = memoryview(blob)
        while left:
            left = left[opened.write(left) :]


def _checksum(blob: bytes) -> int:
    found: int = google_crc32c.value(blob)
    return found


def _damaged(fact: str) -> JobError:
    return JobError(
        fact,
        why="a power cut takes away what was not synced yet",
        hint="headrace repair app.py goes back to the last epoch whose state is whole, or says why that cannot be",
    )
