"""Several rows for each key, with retraction: each row is written and removed by its own identity, and all rows of a key are found
together.

Rows are in the runs of a `KeyedState`; each run is sorted by the key once, when it is first queried. The cost of a lookup depends on its
keys and the rows that it finds, not on the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.frames import columns_of, with_constant
from headrace.operators.state.found_rows import FoundRows
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store


class Multimap(OneState[KeyedState]):
    """Rows by the columns `keys`; `identity` distinguishes the rows of one key. A key with a null has rows, and none of them is found.

    `due` names moments of a row, for `reached`.
    """

    def __init__(self, prefix: str, keys: Sequence[str], identity: Sequence[str], **due: pl.Expr) -> None:
        self._keys = list(keys)
        self._identity = [*self._keys, *(name for name in identity if name not in keys)]
        super().__init__(KeyedState(prefix, self._identity, **due))

    @property
    def identity(self) -> list[str]:
        """The columns that identify a row."""
        return self._identity

    def find(self, keys: pl.DataFrame) -> FoundRows | None:
        """All rows of these keys, in the order of the keys and, for each, of time; None if there are none."""
        found = self._state.matching(self._keys, keys)
        return None if found is None else found.ordered(TIME)

    def having(self, keys: pl.DataFrame) -> np.ndarray:
        """How many rows each of these keys has."""
        return self._state.counted(self._keys, keys)

    def same(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """The rows that have the identity of these; reads no other row of their keys."""
        return self._state.find(rows)

    def change(self, rows: pl.DataFrame, gone: pl.DataFrame, store: Store) -> None:
        """Write rows, in place of those with their identity, and remove others; each identity once in both."""
        parts = [with_constant(rows, GONE, False, pl.Boolean)] if rows.height else []
        if gone.height:
            parts.append(with_constant(columns_of(gone, rows.columns), GONE, True, pl.Boolean))
        if parts:
            self._state.put(pl.concat(parts), store)

    def put(self, rows: pl.DataFrame, store: Store) -> None:
        """Write rows, in place of those with their identity."""
        self.change(rows, rows.clear(), store)

    def remove(self, rows: pl.DataFrame, store: Store) -> None:
        """Remove rows."""
        self.change(rows.clear(), rows, store)

    def reached(self, kind: str, moment: int) -> pl.DataFrame | None:
        """The rows whose moment of this kind is not after `moment`; reads no others."""
        return self._state.reached(kind, moment)

    def all(self) -> pl.DataFrame | None:
        """Every row."""
        return self._state.all()
