"""What operators have in common whose whole memory is one keyed state."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.operators.contract import Size
from headrace.operators.keyed import KeyedState
from headrace.operators.store import Store


class KeyedMemory:
    """Rows by key, under names that begin with `prefix`."""

    def __init__(self, prefix: str, key: Sequence[str]) -> None:
        self._state = KeyedState(prefix, key)

    @property
    def size(self) -> Size:
        return self._state.size

    def manifest(self) -> str:
        return self._state.manifest()

    def restore(self, manifest: str | None, store: Store) -> None:
        self._state.restore(manifest, store)
