"""Versions of rows by key and the time from which each is valid, with lookup as of a time.

A version is valid until the next one of its key, and evicted when that one is before all times that may still be queried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.frames import rows_where
from headrace.operators.state.found_rows import FoundRows, distinct_keys
from headrace.operators.state.multimap import Multimap
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store

UNTIL = "_until"


class Versions(OneState[Multimap]):
    """Rows by the columns `keys`, each valid from its time on; with `ttl`, for that many microseconds at most."""

    def __init__(self, prefix: str, keys: Sequence[str], ttl: int | None = None) -> None:
        super().__init__(Multimap(prefix, keys, [*keys, TIME], evicted=pl.col(UNTIL)))
        self._keys = list(keys)
        self._ttl = ttl

    def put(self, rows: pl.DataFrame, store: Store) -> None:
        """Write versions, each key and time once; one of the same key and time is replaced. A key with a null has no versions."""
        rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in self._keys))
        if rows.is_empty():
            return
        asked, numbers = distinct_keys(rows.select_seq(self._keys))
        known = self._state.find(asked)
        fresh = rows.with_columns_seq(pl.lit(None, pl.Int64).alias(UNTIL))
        if known is None:
            self._state.put(self._bounded(fresh), store)
            return
        earliest = np.full(asked.height, np.iinfo(np.int64).max)
        np.minimum.at(earliest, numbers, rows.get_column(TIME).to_numpy())
        before = rows_where(known.rows, _near(known, earliest)).select_seq(fresh.columns)
        others = before.join(rows, on=self._state.identity, how="anti")
        bounded = self._bounded(pl.concat([others, fresh]))
        # Only known versions whose end moved are written again.
        ended = others.select_seq(*self._state.identity, pl.col(UNTIL).alias("_end"), pl.lit(True).alias("_known"))
        compared = bounded.join(ended, on=self._state.identity, how="left")
        moved = pl.col("_known").is_null() | pl.col("_end").ne_missing(pl.col(UNTIL))
        self._state.put(compared.filter(moved).drop("_end", "_known"), store)

    def as_of(self, keys: pl.DataFrame, moments: np.ndarray) -> FoundRows | None:
        """The version of each key that is valid at its moment, where there is one; the place of each is that of its key."""
        asked, numbers = distinct_keys(keys.select_seq(self._keys))
        found = self._state.find(asked)
        if found is None:
            return None
        since, until = found.rows.get_column(TIME).to_numpy(), found.rows.get_column(UNTIL)
        # One order for versions and queries: by key, then by time, at equal times versions first.
        keys_of = np.concatenate([found.places, numbers])
        times = np.concatenate([since, moments])
        asks = np.concatenate([np.zeros(len(since), dtype=bool), np.ones(len(moments), dtype=bool)])
        order = np.lexsort((asks, times, keys_of))
        latest = np.maximum.accumulate(np.where(asks[order], -1, np.arange(len(order))))
        places = order[np.flatnonzero(asks[order])] - len(since)
        before = latest[asks[order]]
        versions = np.where(before < 0, 0, order[np.maximum(before, 0)])
        same = (before >= 0) & (keys_of[versions] == numbers[places])
        places, versions = places[same], versions[same]
        ends = until.fill_null(np.iinfo(np.int64).max).to_numpy()[versions]
        valid = moments[places] < ends
        places, versions = places[valid], versions[valid]
        return FoundRows(places, found.rows[versions].drop(UNTIL)) if len(places) else None

    def evict(self, horizon: int, store: Store) -> None:
        """Remove the versions that have ended at `horizon`: no earlier moment is queried again."""
        ended = self._state.reached("evicted", horizon)
        if ended is not None:
            self._state.remove(ended, store)

    def _bounded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Versions with the time at which each ends."""
        until = pl.col(TIME).shift(-1).over(self._keys)
        if self._ttl is not None:
            until = pl.min_horizontal(until, pl.col(TIME) + self._ttl)
        return rows.sort(*self._keys, TIME).with_columns_seq(until.alias(UNTIL))


def _near(known: FoundRows, earliest: np.ndarray) -> np.ndarray:
    """Which versions may end new ones or be ended by them: those from the earliest new one of their key on, and the last before that."""
    from_then: np.ndarray = known.rows.get_column(TIME).to_numpy() >= earliest[known.places]
    last_before = np.append(from_then[1:] | (known.places[1:] != known.places[:-1]), True)
    near: np.ndarray = from_then | last_before
    return near
