"""Base classes of operators whose state is one store or several."""

from __future__ import annotations

import json
from functools import reduce
from typing import Generic, Protocol, TypeVar

from headrace.operators.contract import Exported, Size
from headrace.operators.state.store import Store


class PersistentState(Protocol):
    """A state that can be measured, described and restored."""

    @property
    def size(self) -> Size: ...

    def manifest(self) -> str: ...

    def restore(self, manifest: str | None, store: Store) -> object: ...

    def export(self) -> Exported: ...

    def absorb(self, moved: Exported, store: Store) -> None: ...


_S = TypeVar("_S", bound=PersistentState)


class OneState(Generic[_S]):
    """Measured, described and restored by its one state."""

    def __init__(self, state: _S) -> None:
        self._state = state

    @property
    def size(self) -> Size:
        return self._state.size

    def manifest(self) -> str:
        return self._state.manifest()

    def restore(self, manifest: str | None, store: Store) -> None:
        self._state.restore(manifest, store)

    def export(self) -> Exported:
        return self._state.export()

    def absorb(self, moved: Exported, store: Store) -> None:
        self._state.absorb(moved, store)


class SeveralStates:
    """Measured, described and restored by its several states, one after the other."""

    def __init__(self, *states: PersistentState) -> None:
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

    def export(self) -> Exported:
        """The exports of all of them; each has names of its own."""
        return reduce(Exported.plus, (state.export() for state in self._states))

    def absorb(self, moved: Exported, store: Store) -> None:
        for state in self._states:
            state.absorb(moved, store)
