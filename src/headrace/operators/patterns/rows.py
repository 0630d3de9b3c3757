"""Rows of many keys as a search sees them, and the paths that it finds through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl


@dataclass(frozen=True)
class SearchRows:
    """Rows by key and in their order: the conditions that are true for each as bits, and where each key begins and ends.

    `anchored` rows are the first of their key for as long as a match may be.
    """

    frame: pl.DataFrame
    times: np.ndarray
    bits: np.ndarray
    anchored: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True)
class Paths:
    """Rows that were matched, path by path, and the place in the pattern that took each; `sizes` is how many each path has."""

    rows: np.ndarray
    places: np.ndarray
    sizes: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The number of the path that each row is in."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def first(self) -> np.ndarray:
        """The first row of each path."""
        found: np.ndarray = self.rows[np.cumsum(self.sizes) - self.sizes]
        return found

    @property
    def last(self) -> np.ndarray:
        """The last row of each path."""
        found: np.ndarray = self.rows[np.cumsum(self.sizes) - 1]
        return found

    def chosen(self, which: np.ndarray) -> Paths:
        """Some of the paths, in their order."""
        inside = np.repeat(which, self.sizes)
        return Paths(self.rows[inside], self.places[inside], self.sizes[which])

    @classmethod
    def of(cls, paths: Sequence[Sequence[tuple[int, int]]]) -> Paths:
        """Paths of pairs of a row and its place."""
        pairs = np.array([pair for path in paths for pair in path], np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1], np.array([len(path) for path in paths], np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Paths]) -> Paths:
        if not parts:
            return cls.of([])
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "places", "sizes")))


@dataclass(frozen=True)
class SearchCursors:
    """The position of the search of each key: its first row, the next one it looks at, its state, when its time expires.

    A key without a search has no `start` (-1). `decided` is the moment at which the previous search ended.
    """

    start: np.ndarray
    at: np.ndarray
    state: np.ndarray
    limit: np.ndarray
    decided: np.ndarray

    @classmethod
    def idle(cls, keys: int, moment: int) -> SearchCursors:
        return cls(
            np.full(keys, -1, np.int64), np.zeros(keys, np.int64), np.zeros(keys, np.int32),
            np.zeros(keys, np.int64), np.full(keys, moment, np.int64),
        )  # fmt: skip
