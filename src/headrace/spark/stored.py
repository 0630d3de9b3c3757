"""What is stored of one shard of a level: in Spark's state store a manifest and small blobs, large ones in files beside it."""

from __future__ import annotations

import json
from typing import Any

from headrace.spark.blob_files import GRACE, BlobFiles, written_by

_MANIFEST = "manifest"
# From so many bytes on, a page of memory or a block of a disk, a file takes a tenth of what Spark's store does.
LARGE = 4_096


class Stored:
    """The state of a shard as of the last committed epoch, and what the epoch at work makes of it."""

    def __init__(self, state: Any, files: BlobFiles, epoch: int) -> None:
        self._state, self._files, self._at_work = state, files, epoch
        found = state.getValue((_MANIFEST,))
        content: dict[str, Any] = json.loads(bytes(found[0])) if found is not None else {"epoch": 0, "operators": {}, "files": {}}
        self.epoch: int = content["epoch"]
        self.manifests: dict[str, str] = content["operators"]
        """What each operator needs to find its state again."""
        self._named: dict[str, str] = content["files"]
        """The files of blobs, by the names of these."""
        self._spent: dict[str, int] = {}

    def blobs(self, operator: str) -> Blobs:
        return Blobs(self, f"{operator}/")

    def spent(self) -> dict[str, int]:
        """Files that this state does not stand on, for who meets the shard for the first time; since when is not known.

        What is left of epochs that never ended goes: they are done again, and of a torn file nobody could tell that it does not count.
        """
        spent = set(self._files.names()).difference(self._named.values())
        left = {name for name in spent if written_by(name) > self.epoch}
        self._files.remove(left)
        return dict.fromkeys(spent - left, self.epoch)

    def keep(self, spent: dict[str, int]) -> dict[str, int]:
        """End the epoch at work. Of files that earlier ones had spent those go that nobody can need; gives the others."""
        content = {"epoch": self._at_work, "operators": self.manifests, "files": self._named}
        self._state.updateValue((_MANIFEST,), (json.dumps(content).encode(),))
        over = [name for name, epoch in spent.items() if epoch + GRACE < self._at_work]
        self._files.remove(over)
        return {name: epoch for name, epoch in (spent | self._spent).items() if name not in over}

    def get(self, name: str) -> bytes | None:
        if name in self._named:
            return self._files.read(self._named[name])
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, blob: bytes) -> None:
        if len(blob) < LARGE:
            self._state.updateValue((name,), (blob,))
        else:
            self._named[name] = self._files.write(self._at_work, blob)

    def delete(self, name: str) -> None:
        file = self._named.pop(name, None)
        if file is None:
            self._state.removeKey((name,))
        else:
            self._spent[file] = self._at_work


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
