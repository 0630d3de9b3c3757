"""What is stored of one shard of a level, as of an epoch, and what the next epoch changes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from headrace.spark.shard_files import GRACE, Attempt, ShardFiles, written_by


class Manifest(NamedTuple):
    """What the state of a shard is as of an epoch."""

    operators: dict[str, str]
    """What each operator needs to find its state again."""
    blobs: dict[str, str]
    """The files of blobs, by the names of these."""

    def to_bytes(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @classmethod
    def of(cls, content: bytes) -> Manifest:
        return cls(**json.loads(content))


class Stored:
    """The files of a shard as of an epoch. If the next one changes them and does not finish, the disk is as it was; this is not."""

    def __init__(self, files: ShardFiles, epoch: int) -> None:
        self._files = files
        self.epoch = epoch
        self._manifest = files.needed_manifest(epoch).path.name if epoch else None
        self.operators, self._blobs = Manifest({}, {}) if self._manifest is None else Manifest.of(files.read(self._manifest))
        others = set(files.names()).difference(self._blobs.values(), [self._manifest])
        over = _outlived(files, others, epoch)
        files.remove(over)
        # Since when nothing stands on these is not known, nor whether a task that nobody waits for is still writing some.
        self._spent = dict.fromkeys(others - over, epoch)

    def blobs(self, operator: str) -> Blobs:
        return Blobs(self, f"{operator}/")

    def finish(self, operators: Mapping[str, str], attempt: Attempt) -> None:
        """Be what is stored as of the next epoch. Files that nobody can need any more go."""
        self.operators = dict(operators)
        self.epoch += 1
        former, self._manifest = self._manifest, self._files.write(self.epoch, Manifest(self.operators, self._blobs).to_bytes(), attempt)
        self._spend(former, self.epoch)
        over = [name for name, epoch in self._spent.items() if epoch + GRACE < self.epoch]
        self._files.remove(over)
        for name in over:
            del self._spent[name]

    def get(self, name: str) -> bytes | None:
        return self._files.read(self._blobs[name]) if name in self._blobs else None

    def put(self, name: str, blob: bytes) -> None:
        self.delete(name)
        self._blobs[name] = self._files.write(self.epoch + 1, blob)

    def delete(self, name: str) -> None:
        self._spend(self._blobs.pop(name, None), self.epoch + 1)

    def _spend(self, file: str | None, epoch: int) -> None:
        """Of a file, if there is one, it is known since which epoch nothing stands on it."""
        if file is not None:
            self._spent[file] = epoch


def _outlived(files: ShardFiles, names: set[str], epoch: int) -> set[str]:
    """Those of files on which nothing stands now that nobody can need any more.

    What the first of the epochs that count does not stand on, of what was written by then, none after it does.
    """
    first = files.manifest(epoch - GRACE)
    if first is None or not first.whole(thorough=True):
        return set()
    needed = {first.path.name, *Manifest.of(first.path.read_bytes()).blobs.values()}
    return {name for name in names - needed if written_by(name) <= first.epoch}


class Blobs:
    """The blobs of one operator."""

    def __init__(self, stored: Stored, prefix: str) -> None:
        self._stored, self._prefix = stored, prefix

    def get(self, name: str) -> bytes | None:
        return self._stored.get(self._prefix + name)

    def put(self, name: str, blob: bytes) -> None:
        self._stored.put(self._prefix + name, blob)

    def delete(self, name: str) -> None:
        self._stored.delete(self._prefix + name)
