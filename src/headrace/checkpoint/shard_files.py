"""The state of a job in files: blobs by step and shard, and one manifest for all steps of a level and shard an epoch.

A file is written once. Its name has the epoch that wrote it, its size and its checksum: no task waits until it is on the disk, and a file
that a power cut tore is found by its name. The last file of an epoch is the manifest, which names the blobs of the state as of that epoch.
If several attempts wrote one, that of the last attempt counts; an attempt whose outputs came too late withdraws its own. An epoch counts if
Spark committed it; otherwise it is repeated from the manifest of the previous epoch.

A new file takes the place of one that nothing needs any more, if there is one. To create one after many were removed takes ext4 0.3 ms, a
tenth of a small epoch for all of its files: it looks at every file that was removed in the last seconds.

A step keeps its directory for as long as it keeps its state, however the plan around it changes. Manifests are in the directory of a
layout: an accepted change of the app writes those of another one, and blobs of unchanged steps stay where they are.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from headrace.core import failpoints
from headrace.core.errors import JobError

# Their place in a checkpoint.
SHARDS = "shards"
# Spark keeps the offsets and commits of at least 100 epochs (spark.sql.streaming.minBatchesToRetain), to which a repair may go back.
GRACE = 128
_NAME = re.compile(
    r"(?P<epoch>\d+)-([0-9a-f]{8}|manifest-(?P<run>\d+)-(?P<task>\d+))-(?P<size>\d+)-(?P<checksum>[0-9a-f]{8})",
)


class WriterAttempt(NamedTuple):
    """The writer of a manifest: the number of the job's run, and that of the task in it. A later one is greater."""

    run: int = 0
    task: int = 0


class ShardFile(NamedTuple):
    """A file as described by its name."""

    path: Path
    epoch: int
    size: int
    checksum: int
    attempt: WriterAttempt | None
    """The writer, if it is a manifest."""

    def whole(self, *, thorough: bool) -> bool:
        """Whether it is unchanged, by its size or, thoroughly, by its content."""
        try:
            return self.path.stat().st_size == self.size and not (thorough and _checksum(self.path.read_bytes()) != self.checksum)
        except FileNotFoundError:
            return False


class ShardFiles:
    """The files of one shard of some steps: manifests in a directory of their own, and blobs in one for each step.

    A file is named by its step and its name there, `step/name`; a manifest, which belongs to no step, by its name.
    """

    def __init__(self, directory: Path, steps: Sequence[str] = ()) -> None:
        self.directory = directory
        self._steps = steps

    def write(self, epoch: int, blob: bytes, attempt: WriterAttempt | None = None, step: str = "", *, over: str | None = None) -> str:
        """Write a blob of a step, or the manifest of an attempt, to a file of an epoch, over an old file if one is named; returns its
        name."""
        kind = secrets.token_hex(4) if attempt is None else f"manifest-{attempt.run}-{attempt.task}"
        name = f"{step}/" * bool(step) + f"{epoch}-{kind}-{len(blob)}-{_checksum(blob):08x}"
        # Complete or not there, however this process ends.
        path = self.path(name)
        fresh = path.with_name(f"{path.name}.new")
        if over is not None:
            with suppress(FileNotFoundError):
                self.path(over).rename(fresh)
        try:
            _fill(fresh, blob)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _fill(fresh, blob)
        failpoints.reach("state.file.before")
        fresh.rename(path)
        failpoints.reach("state.file.after")
        return name

    def path(self, name: str) -> Path:
        step, _, file = name.rpartition("/")
        return (self.directory.parent.parent / step / self.directory.name if step else self.directory) / file

    def read(self, name: str) -> bytes:
        """The content of a file. Raises if it was changed or damaged."""
        file = self.file(name)
        blob = file.path.read_bytes() if file.path.exists() else None
        if blob is None or (len(blob), _checksum(blob)) != (file.size, file.checksum):
            raise _damaged(f"the state references {file.path}, which is {'missing' if blob is None else 'torn'}")
        return blob

    def file(self, name: str) -> ShardFile:
        found = _named(self.path(name))
        assert found is not None, f"{name} is not the name of a file of a shard"
        return found

    def manifest(self, epoch: int) -> ShardFile | None:
        """The manifest of an epoch: that of the last attempt."""
        return next(iter(self.manifests(epoch)), None)

    def manifests(self, epoch: int) -> list[ShardFile]:
        """The manifests of all attempts of an epoch, the last one first."""
        found = [file for path in self.directory.glob(f"{epoch}-manifest-*") if (file := _named(path)) is not None]
        return sorted(found, key=lambda file: file.attempt or WriterAttempt(), reverse=True)

    def needed_manifest(self, epoch: int) -> ShardFile:
        """The same, of a finished epoch: it must exist."""
        found = self.manifest(epoch)
        if found is None:
            raise _damaged(f"the state as of epoch {epoch} is missing in {self.directory}")
        return found

    def names(self) -> list[str]:
        """All our files, unfinished ones included; file systems add others, such as .nfs0001."""
        kept = [f"{step}/{path.name}" for step in self._steps for path in self.path(f"{step}/").glob("[0-9]*-*")]
        return [path.name for path in self.directory.glob("[0-9]*-*")] + kept

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.path(name).unlink(missing_ok=True)


def shard_files(checkpoint: Path, level: int, shard: int, layout: int = 0, steps: Sequence[str] = ()) -> ShardFiles:
    """The files of a shard of the steps of a level, in the checkpoint of a job."""
    return ShardFiles(checkpoint / SHARDS / manifests_of(level, layout) / str(shard), steps)


def manifests_of(level: int, layout: int) -> str:
    """The directory for the manifests of a level."""
    return f"@{layout}.{level}"


def written_by(name: str) -> int:
    """The epoch that wrote a file, or began to."""
    return int(name.rpartition("/")[2].partition("-")[0])


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
    attempt = WriterAttempt(int(said["run"]), int(said["task"])) if said["run"] else None
    return ShardFile(path, int(said["epoch"]), int(said["size"]), int(said["checksum"], 16), attempt)


def _fill(path: Path, blob: bytes) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        left = memoryview(blob)
        while left:
            left = left[os.write(opened, left) :]
        if os.fstat(opened).st_size > len(blob):
            os.ftruncate(opened, len(blob))
    finally:
        os.close(opened)


def _checksum(blob: bytes) -> int:
    found: int = google_crc32c.value(blob)
    return found


def _damaged(fact: str) -> JobError:
    return JobError(
        fact,
        why="a power cut loses what was not synced",
        hint="headrace repair app.py goes back to the last epoch whose state is complete, or says why it cannot",
    )
