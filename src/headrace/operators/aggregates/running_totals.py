"""Running totals by key: what can be summed exactly is added when an event arrives and subtracted when it leaves the window.

Sums of floats are whole numbers, except for a rest of very small and very large values, infinity and NaN (`exact_sums.py`). For the rest,
the totals only count the events that have one: where some do, the window has to be summed again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.numbered_groups import firsts, key_numbers
from headrace.operators.aggregates.partials import ROWS, accumulators, additive
from headrace.operators.changes import TIME
from headrace.operators.key_join import key_join
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store

_ADDED, _KEY, _LAST = "_added", "_key", "_last"


class RunningTotals(OneState[KeyedState]):
    """The total of each key of one shard as of the watermark. The cost of an epoch depends on the events that arrive and leave in it."""

    def __init__(self, by: Sequence[str], aggregates: Sequence[EvaluatedCall]) -> None:
        super().__init__(KeyedState("total", by))
        self._by = list(by)
        self._place = [*by, TIME]
        self._parts = accumulators(aggregates)
        self.invertible = additive(aggregates)
        self._rests = [name for aggregate in aggregates if (name := aggregate.part("rest")) in self._parts]

    def suit(self, partial: pl.DataFrame) -> bool:
        """Whether partial results can be subtracted again exactly."""
        return self.invertible and all(partial.schema[name].is_integer() for name in self._parts if name not in self._rests)

    def include(self, late: pl.DataFrame, store: Store) -> None:
        """Add late events that are still in the window to the totals."""
        self._put(self._carried(self._counted(late).with_columns_seq(pl.lit(False).alias(_ADDED))), store)

    def advance(self, coming: pl.DataFrame, leaving: pl.DataFrame, store: Store) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Add events at their time and remove others at theirs; returns the total of each key at each time at which one arrived.

        The second frame has the keys and times at which the total is not known, because it includes events with a rest.
        """
        coming, leaving = self._counted(coming), self._counted(leaving)
        taken = [(pl.lit(0, leaving.schema[name]) - pl.col(name)).alias(name) for name in self._parts]
        gone = leaving.with_columns_seq(*taken, pl.lit(False).alias(_ADDED))
        both = pl.concat([coming.with_columns_seq(pl.lit(True).alias(_ADDED)), gone.select_seq(*coming.columns, _ADDED)])
        totals = self._carried(both)
        self._put(totals, store)
        totals = totals.filter(_ADDED).drop(_ADDED, _LAST)
        if not self._rests:
            return totals, totals.clear()
        exact = pl.all_horizontal(pl.col(name) == 0 for name in self._rests)
        known = totals.filter(exact).with_columns_seq(pl.lit(0.0).alias(name) for name in self._rests)
        return known, totals.filter(~exact).select_seq(self._place)

    def _counted(self, events: pl.DataFrame) -> pl.DataFrame:
        """Events with a mark in place of their rest, which is not exact."""
        return events.with_columns_seq((pl.col(name) != 0.0).cast(pl.Int64).alias(name) for name in self._rests)

    def _carried(self, changes: pl.DataFrame) -> pl.DataFrame:
        """The total of each key after each of its changes, by key; at the same time, events that leave go first."""
        # By number: text is slow to sort, and a sum within each key is slower than a sum over all minus the sum before the key.
        numbers = key_numbers(changes, self._by)
        changes = changes.rechunk().with_columns_seq(pl.Series(_KEY, numbers))
        keys = changes.select_seq(*self._by, _KEY)[firsts(numbers)]
        known = self._state.find(keys)
        if known is not None:
            # The total so far precedes all changes.
            first = known.with_columns_seq(pl.lit(None, pl.Int64).alias(TIME), pl.lit(False).alias(_ADDED))
            first = key_join(first, keys, self._by, "left", nulls_equal=True)
            changes = pl.concat([first.select_seq(changes.columns), changes], rechunk=True)
        ordered = _sorted(changes)
        places = ordered.get_column(_KEY).to_numpy()
        ends = np.append(np.flatnonzero(places[1:] != places[:-1]), len(places) - 1)
        # The sum over all earlier keys, for each record of a key.
        summed = ordered.select_seq(pl.col(self._parts).cum_sum())
        before = pl.concat([summed.clear(1).with_columns_seq(pl.all().fill_null(0)), summed[ends[:-1]]], rechunk=True)
        repeated = before[np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))]
        last = np.zeros(len(places), dtype=bool)
        last[ends] = True
        carried = [summed.get_column(name) - repeated.get_column(name) for name in self._parts]
        return ordered.drop(_KEY).with_columns_seq(*carried, pl.Series(_LAST, last)).drop_nulls(TIME)

    def _put(self, totals: pl.DataFrame, store: Store) -> None:
        last = totals.filter(_LAST).select_seq(*self._by, *self._parts)
        self._state.put(last.with_columns_seq((pl.col(ROWS) == 0).alias(GONE)), store)


def _sorted(changes: pl.DataFrame) -> pl.DataFrame:
    """Changes by key and time: the known total first, and at the same time events that leave before those that arrive."""
    low, high, most = changes.select_seq(low=pl.col(TIME).min(), high=pl.col(TIME).max(), most=pl.col(_KEY).max()).row(0)
    # In one number, where it fits: that sorts in half the time.
    room = 2 * (high - low + 2)
    if (most + 1) * room >= 2**62:
        return changes.sort(_KEY, TIME, _ADDED)
    place = pl.col(_KEY) * room + (pl.col(TIME) - (low - 1)).fill_null(0) * 2 + pl.col(_ADDED)
    return changes[np.argsort(changes.select_seq(place.alias("place")).get_column("place").to_numpy())]
