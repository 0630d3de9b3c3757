"""Layouts of a job's state: the place of each step's state, and the takeover of one layout's state into another.

Steps that are stored as before keep their files: only manifests are written. Others are read, moved by key group, and written again. The
former layout stays complete, so that nothing has changed until the job's record names the new one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from headrace.checkpoint.shard_files import SHARDS, ShardFiles, WriterAttempt, manifests_of, shard_files
from headrace.checkpoint.shard_state import Manifest
from headrace.core.files.disk import sync_directory, sync_file


class PlacedStep(NamedTuple):
    """A step in a layout: the directory of its blobs, its level, and the fingerprint of what it computes."""

    id: str
    level: int
    fingerprint: str


@dataclass(frozen=True)
class StateLayout:
    """One layout of the state of a job: its number, its shards, and its steps by their names in the plan."""

    checkpoint: Path
    number: int
    shards: int
    steps: Mapping[str, PlacedStep]
    levels: int

    def files(self, level: int, shard: int) -> ShardFiles:
        return shard_files(self.checkpoint, level, shard, self.number)


class Rewritten(Protocol):
    """The state of one step, written again for each shard of the new layout."""

    def __call__(self, former: Sequence[StepBlobs], fresh: Sequence[StepBlobs]) -> list[str]:
        """Read the step from all its former shards, write it to all its new ones, and return the manifest of each of these."""
        ...


class StepBlobs:
    """The blobs of a step on one shard, read from a layout or written to one, as of an epoch."""

    def __init__(self, files: ShardFiles, step: str, epoch: int, known: Manifest | None = None) -> None:
        self._files, self._step, self._epoch = files, step, epoch
        prefix = f"{step}/"
        found = {} if known is None else known.blobs
        self.blobs = {name.removeprefix(prefix): file for name, file in found.items() if name.startswith(prefix)}
        self.manifest = None if known is None else known.operators.get(step)

    def get(self, name: str) -> bytes | None:
        return self._files.read(f"{self._step}/{self.blobs[name]}") if name in self.blobs else None

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = self._files.write(self._epoch, blob, step=self._step).rpartition("/")[2]

    def delete(self, name: str) -> None:
        self.blobs.pop(name, None)


@dataclass
class Takeover:
    """The state of one layout on its way into another, as of an epoch."""

    before: StateLayout
    after: StateLayout
    epoch: int
    _manifests: dict[tuple[int, int], Manifest] = field(default_factory=dict)

    def keep(self, former: str, name: str) -> None:
        """Let a step have the files that it has."""
        old, new = self.before.steps[former], self.after.steps[name]
        for shard in range(self.after.shards):
            stored = self._stored(old, shard)
            if stored.manifest is not None:
                self._add(new, shard, stored.manifest, stored.blobs)

    def rewrite(self, former: str, name: str, rewritten: Rewritten) -> None:
        """Let a step have files of its own, made of those of another."""
        old, new = self.before.steps[former], self.after.steps[name]
        read = [self._stored(old, shard) for shard in range(self.before.shards)]
        fresh = [StepBlobs(self.after.files(new.level, shard), new.id, self.epoch) for shard in range(self.after.shards)]
        for shard, (manifest, stored) in enumerate(zip(rewritten(read, fresh), fresh, strict=True)):
            self._add(new, shard, manifest, stored.blobs)

    def finish(self) -> None:
        """Write the manifests, and make all that the new layout refers to durable."""
        written: set[Path] = set()
        for level in range(1, self.after.levels + 1):
            for shard in range(self.after.shards):
                files, manifest = self.after.files(level, shard), self._manifest(level, shard)
                names = [*manifest.files, files.write(self.epoch, manifest.to_bytes(), WriterAttempt())]
                written |= {files.path(name) for name in names}
        for file in written:
            sync_file(file)
        root = self.after.checkpoint
        for directory in {directory for file in written for directory in file.parents if directory.is_relative_to(root)}:
            sync_directory(directory)

    def _stored(self, step: PlacedStep, shard: int) -> StepBlobs:
        files = self.before.files(step.level, shard)
        manifest = Manifest.of(files.read(files.needed_manifest(self.epoch).path.name))
        return StepBlobs(files, step.id, self.epoch, manifest)

    def _manifest(self, level: int, shard: int) -> Manifest:
        return self._manifests.setdefault((level, shard), Manifest({}, {}, {}))

    def _add(self, step: PlacedStep, shard: int, manifest: str, blobs: Mapping[str, str]) -> None:
        made = self._manifest(step.level, shard)
        made.operators[step.id] = manifest
        made.fingerprints[step.id] = step.fingerprint
        made.blobs.update({f"{step.id}/{name}": file for name, file in blobs.items()})


def remove_others(layout: StateLayout) -> None:
    """Remove what no step of a layout has: former layouts, and steps and shards that are gone."""
    kept = {step.id for step in layout.steps.values()} | {manifests_of(level, layout.number) for level in range(1, layout.levels + 1)}
    for directory in _directories(layout.checkpoint):
        gone = [directory] if directory.name not in kept else [path for path in directory.iterdir() if int(path.name) >= layout.shards]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)


def _directories(checkpoint: Path) -> Iterator[Path]:
    return (path for path in list((checkpoint / SHARDS).glob("*")) if path.is_dir())
