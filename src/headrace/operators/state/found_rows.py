"""Rows that were found for keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.aggregates.numbered_groups import firsts, key_numbers
from headrace.operators.frames import rows_at, rows_where


@dataclass(frozen=True)
class FoundRows:
    """Rows, and for each the place of the key that it was found for; a row occurs once for each key that asked for it."""

    places: np.ndarray
    rows: pl.DataFrame

    @classmethod
    def of(cls, parts: Sequence[tuple[np.ndarray, pl.DataFrame]]) -> FoundRows | None:
        """The rows found in several frames; None if there are none."""
        parts = [part for part in parts if len(part[0])]
        if not parts:
            return None
        return cls(np.concatenate([places for places, _ in parts]), pl.concat([rows for _, rows in parts], rechunk=True))

    def where(self, chosen: np.ndarray) -> FoundRows:
        """Only some of the rows."""
        return FoundRows(self.places[chosen], rows_where(self.rows, chosen))

    def ordered(self, *columns: str) -> FoundRows:
        """By key, and then by these columns."""
        order = self.rows.select_seq(columns).with_columns_seq(pl.Series("_place", self.places)).select_seq(
            pl.arg_sort_by("_place", *columns, nulls_last=False)
        ).to_series().to_numpy()  # fmt: skip
        return FoundRows(self.places[order], rows_at(self.rows, order))


def distinct_keys(keys: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
    """Each key once, in the order of their first rows, and for each row the place of its key among them.

    >>> distinct, places = distinct_keys(pl.DataFrame({"k": ["b", "a", "b"]}))
    >>> distinct.get_column("k").to_list(), places.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    numbers = key_numbers(keys, keys.columns)
    first = firsts(numbers)
    order = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    return rows_at(keys, first[order]), place[np.searchsorted(numbers[first], numbers)]
