"""Several rows for each key that are removed only by time, not one by one: one side of a join of streams, the events of windows.

Rows are in the frames of `Chunks`, each sorted by key and time once, when it is first queried.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.frames import rows_at
from headrace.operators.state.chunks import Chunks, Merge
from headrace.operators.state.found_rows import FoundRows
from headrace.operators.state.persistent import OneState
from headrace.operators.state.row_lookup import RowLookup, TimeSpan, WantedKeys
from headrace.operators.state.store import Store


class TimedRows(OneState[Chunks]):
    """Rows by the columns `keys` and by their time. A row whose key has a null is never found.

    `merge` merges rows of the same key and time where several are.
    """

    def __init__(self, prefix: str, keys: Sequence[str], merge: Merge = lambda frame: frame) -> None:
        super().__init__(Chunks(prefix, TIME, merge))
        self._keys = list(keys)
        # By the identity of a frame, which is kept with it so that no other has the same.
        self._lookups: dict[int, tuple[pl.DataFrame, RowLookup]] = {}

    def find(self, keys: pl.DataFrame, span: TimeSpan) -> FoundRows | None:
        """All rows of these keys whose time is in the span of each, in no order and not merged; None if there are none."""
        if keys.is_empty():
            return None
        wanted = WantedKeys(keys, self._keys)
        frames = self._state.overlapping(int(span.low.min()), int(span.high.max()))
        parts = []
        for frame in frames:
            places, rows = self._lookup(frame).find(wanted, span)
            if len(places):
                parts.append((places, rows_at(frame, rows)))
        return FoundRows.of(parts)

    def between(self, low: int, high: int) -> pl.DataFrame | None:
        """The rows whose time is at least `low` and less than `high`; None if there are none."""
        return self._state.between(low, high)

    def add(self, rows: pl.DataFrame) -> None:
        """Take in rows; `save` makes them durable."""
        self._state.add(rows)

    def save(self, limit: int, store: Store) -> None:
        """End an epoch: drop rows before `limit`, which are not queried again, and make new ones durable."""
        self._state.save(limit, store)
        current = {id(frame) for frame in self._state.overlapping(*self._state.span())}
        self._lookups = {number: known for number, known in self._lookups.items() if number in current}

    def _lookup(self, frame: pl.DataFrame) -> RowLookup:
        if id(frame) not in self._lookups:
            self._lookups[id(frame)] = (frame, RowLookup(frame, self._keys, TIME))
        return self._lookups[id(frame)][1]
