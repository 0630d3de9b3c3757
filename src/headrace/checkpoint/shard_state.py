"""The stored state of one shard of a level, as of an epoch, and the changes of the next epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from headrace.checkpoint.shard_files import GRACE, ShardFile, ShardFiles, WriterAttempt, written_by
from headrace.core.errors import JobError

# The form of a manifest and of the blobs that it names.
VERSION = 1


class Manifest(NamedTuple):
    """The state of the steps of a level on a shard, as of an epoch."""

    operators: dict[str, str]
    """The manifest of each step, with which it finds its state again."""
    blobs: dict[str, str]
    """The files of blobs in the directories of their steps, by step and name. A blob has its own schema."""
    fingerprints: dict[str, str] = {}  # noqa: RUF012 - it is never changed
    """The fingerprint of each step, which tells its state from that of another."""
    version: int = VERSION

    @property
    def files(self) -> list[str]:
        """The blobs by their names among the files of the shard."""
        return [in_step(name, file) for name, file in self.blobs.items()]

    def to_bytes(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @classmethod
    def of(cls, content: bytes) -> Manifest:
        return cls(**json.loads(content))


def in_step(name: str, file: str) -> str:
    """A blob by its name among the files of the shard."""
    step, slash, _ = name.rpartition("/")
    return f"{step}{slash}{file}"


class Attempted:
    """The state that an earlier attempt of an epoch has stored; it is only read."""

    def __init__(self, files: ShardFiles, manifest: Manifest) -> None:
        self._files, self._manifest = files, manifest

    def manifest_of(self, step: str, fingerprint: str) -> str | None:
        """The manifest of a step's state; None if there is none, or if it computed something else."""
        return self._manifest.operators.get(step) if self._manifest.fingerprints.get(step) == fingerprint else None

    def blobs(self, step: str) -> dict[str, bytes]:
        """The blobs of a step by their names."""
        mine = {name: file for name, file in self._manifest.blobs.items() if name.rpartition("/")[0] == step}
        return {name.rpartition("/")[2]: self._files.read(in_step(name, file)) for name, file in mine.items()}


def attempted(files: ShardFiles, epoch: int) -> Attempted | None:
    """What the last earlier attempt of an epoch that finished a shard has stored; None if none did."""
    whole = (file for file in files.manifests(epoch) if _whole(files, file))
    return next((Attempted(files, Manifest.of(file.path.read_bytes())) for file in whole), None)


class StoredShard:
    """The files of a shard as of an epoch. If the next one changes them and does not finish, the disk is unchanged; this object is not."""

    def __init__(self, files: ShardFiles, epoch: int) -> None:
        self._files = files
        self.epoch = epoch
        self._manifest = files.needed_manifest(epoch).path.name if epoch else None
        known = Manifest({}, {}) if self._manifest is None else Manifest.of(files.read(self._manifest))
        self.operators, self._blobs, self._fingerprints = known.operators, known.blobs, known.fingerprints
        others = set(files.names()).difference(known.files, [self._manifest])
        over = _outlived(files, others, epoch)
        files.remove(over)
        # The epoch from which these are unreferenced is not known, nor whether an abandoned task is still writing some.
        self._spent = dict.fromkeys(others - over, epoch)
        self._spare: list[str] = []

    def blobs(self, operator: str) -> Blobs:
        return Blobs(self, f"{operator}/")

    def manifest_of(self, step: str, fingerprint: str) -> str | None:
        """The manifest of a step's state; refused if the state under its name is of a step that computes something else."""
        known = self._fingerprints.get(step, fingerprint)
        if known != fingerprint:
            raise JobError(
                f"the state of step {step!r} is of a step with fingerprint {known}, and this one has {fingerprint}",
                why="results of one step would be mistaken for those of the other",
                hint="headrace plan app.py shows what changed",
            )
        return self.operators.get(step)

    def finish(self, operators: Mapping[str, str], attempt: WriterAttempt, fingerprints: Mapping[str, str] | None = None) -> None:
        """Store the state as of the next epoch. Files that cannot be needed any more are removed."""
        self.operators, self._fingerprints = dict(operators), dict(fingerprints or {})
        self.epoch += 1
        manifest = Manifest(self.operators, self._blobs, self._fingerprints)
        former, self._manifest = self._manifest, self._files.write(self.epoch, manifest.to_bytes(), attempt, over=self._over())
        self._spend(former, self.epoch)
        self._files.remove(self._spare)
        # The next epoch writes over these; what it does not need of them is removed when it is finished.
        self._spare = [name for name, epoch in self._spent.items() if epoch + GRACE <= self.epoch]
        for name in self._spare:
            del self._spent[name]

    def get(self, name: str) -> bytes | None:
        return self._files.read(in_step(name, self._blobs[name])) if name in self._blobs else None

    def put(self, name: str, blob: bytes) -> None:
        self.delete(name)
        written = self._files.write(self.epoch + 1, blob, step=name.rpartition("/")[0], over=self._over())
        self._blobs[name] = written.rpartition("/")[2]

    def delete(self, name: str) -> None:
        file = self._blobs.pop(name, None)
        self._spend(None if file is None else in_step(name, file), self.epoch + 1)

    def _over(self) -> str | None:
        """A file to write over, if there is one."""
        return self._spare.pop() if self._spare else None

    def _spend(self, file: str | None, epoch: int) -> None:
        """Record the epoch from which a file is unreferenced."""
        if file is not None:
            self._spent[file] = epoch


def _outlived(files: ShardFiles, names: set[str], epoch: int) -> set[str]:
    """Unreferenced files that cannot be needed any more.

    A file that was written by the first epoch of the grace period and is not referenced by it is not referenced by any later epoch.
    """
    first = files.manifest(epoch - GRACE)
    if first is None or not first.whole(thorough=True):
        return set()
    needed = {first.path.name, *Manifest.of(first.path.read_bytes()).files}
    return {name for name in names - needed if written_by(name) <= first.epoch}


def withdrawn(files: ShardFiles, epoch: int, attempt: WriterAttempt) -> bool:
    """Remove the manifest of an attempt if there is an earlier one whose files are complete; returns whether it was removed."""
    mine, *earlier = [file for file in files.manifests(epoch) if file.attempt is not None and file.attempt <= attempt]
    if not any(_whole(files, manifest) for manifest in earlier[:1]):
        return False
    files.remove([mine.path.name])
    return True


def _whole(files: ShardFiles, manifest: ShardFile) -> bool:
    if not manifest.whole(thorough=True):
        return False
    blobs = Manifest.of(manifest.path.read_bytes()).files
    return all(files.file(name).whole(thorough=True) for name in blobs)


class Blobs:
    """The blobs of one operator."""

    def __init__(self, stored: StoredShard, prefix: str) -> None:
        self._stored, self._prefix = stored, prefix

    def get(self, name: str) -> bytes | None:
        return self._stored.get(self._prefix + name)

    def put(self, name: str, blob: bytes) -> None:
        self._stored.put(self._prefix + name, blob)

    def delete(self, name: str) -> None:
        self._stored.delete(self._prefix + name)
