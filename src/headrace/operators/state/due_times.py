"""Rows of one run of keyed state by the moment at which each is due: a session that closes, a key that expires, a timer.

A run never changes, so its rows are sorted once, when the first of them is due; later queries begin where the last one ended.
"""

from __future__ import annotations

import numpy as np
import polars as pl

_NONE = np.empty(0, dtype=np.int64)


class DueTimes:
    """The rows of a run in the order of their moments; a row whose moment is null is never due.

    >>> times = DueTimes(pl.Series([30, 10, None, 20]))
    >>> times.reached(20, np.array([True, True, True, True])).tolist()
    [1, 3]
    >>> times.reached(30, np.array([True, False, True, False])).tolist()
    [0]
    """

    def __init__(self, moments: pl.Series) -> None:
        self._moments: pl.Series | None = moments
        self._sorted, self._rows = _NONE, _NONE
        # Rows before this place are old versions, and none before this moment is due.
        self._place = 0
        least = moments.min()
        self._next = int(least) if isinstance(least, int) else None

    def reached(self, moment: int, alive: np.ndarray) -> np.ndarray:
        """The numbers of the rows that are alive and due at `moment`, in their order in the run."""
        if self._next is None or moment < self._next:
            return _NONE
        self._sort()
        end = int(np.searchsorted(self._sorted, moment, side="right"))
        rows = self._rows[self._place : end]
        present = alive[rows]
        # Most due rows are replaced by a new version at once, and then skipped for good.
        self._place += int(present.argmax()) if present.any() else len(rows)
        self._next = int(self._sorted[self._place]) if self._place < len(self._sorted) else None
        return np.sort(rows[present])

    def _sort(self) -> None:
        if self._moments is None:
            return
        known = np.flatnonzero(self._moments.is_not_null().to_numpy())
        values = self._moments.drop_nulls().to_numpy()
        order = np.argsort(values, kind="stable")
        self._sorted, self._rows, self._moments = values[order], known[order], None
