"""The store of an operator's state: named blobs, one set for each operator and shard."""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """Blobs by name. Blobs of an epoch are kept if the epoch is, and dropped if it fails."""

    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, blob: bytes) -> None: ...

    def delete(self, name: str) -> None: ...


class MemoryStore:
    """Blobs in a dictionary, for tests and the Lab."""

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        self.blobs = {} if blobs is None else blobs

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob

    def delete(self, name: str) -> None:
        self.blobs.pop(name, None)
