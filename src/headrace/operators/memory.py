"""What everything has in common whose whole memory is one state, or some."""

from __future__ import annotations

import json
from functools import reduce
from typing import Generic, Protocol, TypeVar

from headrace.operators.contract import Size
from headrace.operators.store import Store


class State(Protocol):
    """What can be measured, described and brought back."""

    @property
    def size(self) -> Size: ...

    def manifest(self) -> str: ...

    def restore(self, manifest: str | None, store: Store) -> object: ...


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


class Memories:
    """Measured, described and brought back as its several states are, one after the other."""

    def __init__(self, *states: State) -> None:
        self._states = states

    @property
    def size(self) -> Size:
        return reduce(Size.plus, (state.size for state in self._states))

    def manifest(self) -> str:
        return json.dumps([state.manifest() for state in self._states])

    def restore(self, manifest: str | None, store: Store) -> None:
        manifests = json.loads(manifest) if manifest else [None] * len(self._states)
        for state, described in zip(self._states, manifests, strict=True):
            state.restore(described, store)
