"""Rows of one immutable frame by key: sorted once by the hash of their key, and by a moment where they have one.

A lookup is a binary search for each wanted key, so that its cost depends on the wanted keys and the found rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.frames import columns_of, row_hashes
from headrace.operators.nulls import filled, nulls_of

_NONE = np.empty(0, dtype=np.int64)
Present = Callable[[np.ndarray], np.ndarray]


def key_hashes(frame: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """A hash for the key of each row; equal keys have equal hashes."""
    return row_hashes(frame, columns, seed=13)


@dataclass(frozen=True)
class TimeSpan:
    """The moments that each wanted key asks for, both ends included."""

    low: np.ndarray
    high: np.ndarray


class WantedKeys:
    """Keys to be found in several frames, hashed and sorted once."""

    def __init__(self, keys: pl.DataFrame, columns: Sequence[str]) -> None:
        self.keys = keys
        hashes = key_hashes(keys, columns)
        # Nulls share a hash: where there are many, each would look at all the others. No row has such a key.
        unknown = [nulls_of(column) for name in columns if (column := keys.get_column(name)).null_count()]
        known = np.flatnonzero(~np.logical_or.reduce(unknown)) if unknown else np.arange(len(hashes))
        # Sorted needles are found several times as quickly.
        self.places = known[np.argsort(hashes[known], kind="stable")]
        self.hashes = hashes[self.places]


class RowLookup:
    """Finds the rows of keys in one frame; a row whose key has a null is never found.

    >>> frame = pl.DataFrame({"k": ["a", "b", "a", None], "at": [3, 1, 2, 5]})
    >>> lookup = RowLookup(frame, ["k"], "at")
    >>> wanted = WantedKeys(pl.DataFrame({"k": ["b", "a", "c"]}), ["k"])
    >>> [found.tolist() for found in lookup.find(wanted)]
    [[0, 1, 1], [1, 2, 0]]
    """

    def __init__(self, frame: pl.DataFrame, keys: Sequence[str], order: str | None = None) -> None:
        self._keys = columns_of(frame, keys)
        hashes = key_hashes(frame, keys)
        moments = None if order is None else frame.get_column(order).to_numpy()
        self._rows = np.argsort(hashes, kind="stable") if moments is None else np.lexsort((moments, hashes))
        self._hashes = hashes[self._rows]
        self._moments = None if moments is None else moments[self._rows]

    def find(self, wanted: WantedKeys, span: TimeSpan | None = None, present: Present | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a wanted key and a row that has it: the place of the key, and the number of the row, in the order of both.

        With `span`, only rows of these moments are read; `present` says which rows count.
        """
        low = np.searchsorted(self._hashes, wanted.hashes, side="left")
        found = np.flatnonzero(self._hashes.take(low, mode="clip") == wanted.hashes) if len(self._hashes) else _NONE
        if not len(found):
            return _NONE, _NONE
        found = found[np.argsort(wanted.places[found])]
        asking, low = wanted.places[found], low[found]
        high = np.searchsorted(self._hashes, wanted.hashes[found], side="right")
        if span is not None and self._moments is not None:
            after = span.high[asking] + 1
            low, high = _bisected(self._moments, low, high, span.low[asking]), _bisected(self._moments, low, high, after)
        stretches, rows = _pairs(low, high)
        places, rows = asking[stretches], self._rows[rows]
        if present is not None:
            kept = present(rows)
            places, rows = places[kept], rows[kept]
        same = self._same(rows, places, wanted.keys)
        return places[same], rows[same]

    def _same(self, rows: np.ndarray, places: np.ndarray, wanted: pl.DataFrame) -> np.ndarray:
        """Whether each row has the wanted key, and not only its hash."""
        same = np.ones(len(rows), dtype=bool)
        for name in self._keys.columns if len(rows) else ():
            mine, theirs = self._keys.get_column(name)[rows], wanted.get_column(name)[places]
            same &= filled(mine.eq(theirs), value=False)
        return same


def _bisected(moments: np.ndarray, low: np.ndarray, high: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each stretch of sorted moments the first place whose moment is not before the wanted one; all at once."""
    low, high = low.copy(), high.copy()
    pending = np.flatnonzero(low < high)
    while len(pending):
        middle = (low[pending] + high[pending]) >> 1
        before = moments[middle] < wanted[pending]
        low[pending[before]] = middle[before] + 1
        high[pending[~before]] = middle[~before]
        pending = pending[low[pending] < high[pending]]
    return low


def _pairs(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of each stretch once for each place in it, and these places."""
    counts = np.maximum(high - low, 0)
    numbers = np.repeat(np.arange(len(counts)), counts)
    behind = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers, np.repeat(low, counts) + behind
