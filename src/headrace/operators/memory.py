"""What everything has in common whose whole memory is one state."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from headrace.operators.contract import Size
from headrace.operators.store import Store


class State(Protocol):
    """What can be measured, described and brought back."""

    @property
    def size(self) -> Size: ...

    def manifest(self) -> str: ...

    def restore(self, manifest: str | None, store: Store) -> None: ...


_S = TypeVar("_S", bound=State)


class Memory(Generic[_S]):
    """Measured, described and brought back as its one state is."""

    def __init__(self, state: _S) -> None:
        self._state = state

    @property
    def size(self) -> Size:
        return self._state.size

    def manifest(self) -> str:
        return self._state.manifest()

    def restore(self, manifest: str | None, store: Store) -> None:
        self._state.restore(manifest, store)
