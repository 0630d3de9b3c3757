"""Count windows: a fixed number of records of a key each, in the order of event time, whatever the order of arrival."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import accumulators, finishes, merged, partial, rolled
from headrace.operators.changes import TIME, added
from headrace.operators.columns import ROW
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome
from headrace.operators.event_time.arrival_order import contents_of
from headrace.operators.event_time.epoch_time import END, EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.key_join import key_join
from headrace.operators.state.chunks import Chunks
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.registry import windowed
from headrace.plan.windows.kinds import Count

# The number of placed records of a key, the place of a record among them, and a pane: records that no window boundary separates.
_COUNT, _PLACE, _PANE, _WINDOW = "_count", "_place", "_pane", "_window"
# From the first to the last record of merged panes.
_EXTENT = {START: pl.col(START).min(), STOP: pl.col(STOP).max()}


@dataclass(frozen=True)
class CountSpec:
    """Windows of `records` records of a key; every `every`th record begins one. `by` has at least one column.

    Records may arrive `lateness` microseconds behind the watermark, because an earlier step still emits late panes.
    """

    records: int
    every: int
    by: tuple[str, ...]
    aggregates: tuple[EvaluatedCall, ...]
    lateness: int = 0

    @property
    def pane(self) -> int:
        return math.gcd(self.records, self.every)

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. A record is late if the watermark has passed it: the places around it are taken."""
        records, late = in_time(records, time.before - self.lateness)
        return Entered(records.drop(ROW, strict=False), records.height, late)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Counts:
        return Counts(self)


class Counts(SeveralStates):
    """The count windows of one shard: records that wait for the watermark, the number of earlier ones of each key, and its open panes."""

    def __init__(self, spec: CountSpec) -> None:
        self._spec = spec
        self._by = list(spec.by)
        self._waiting = Chunks("waiting", TIME, lambda frame: frame)
        self._counts = KeyedState("count", self._by)
        self._panes = KeyedState("pane", [*self._by, _PANE])
        self._parts = [*self._by, _PANE, START, STOP, *accumulators(spec.aggregates)]
        super().__init__(self._waiting, self._counts, self._panes)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Hold records until the watermark has passed them, then assign their places, and emit windows that are full."""
        if arrived.rows:
            self._waiting.add(pl.concat(arrived.rows))
        before, after = time.before - self._spec.lateness, time.after - self._spec.lateness
        released = self._waiting.between(before, after)
        results = [] if released is None else [self._take_places(released, store).with_columns_seq(pl.col(STOP).alias(TIME))]
        self._waiting.save(after, store)
        if time.after >= END:
            # The watermark at which they could still become full: the time of their last record may be long past.
            results += [rest.with_columns_seq(pl.max_horizontal(STOP, pl.lit(time.before)).alias(TIME)) for rest in self._rest(store)]
        return Outcome([added(self._finish(result)) for result in results if result.height])

    def _take_places(self, released: pl.DataFrame, store: Store) -> pl.DataFrame:
        """Assign places to records; returns the windows that became full."""
        spec, by = self._spec, self._by
        keys = released.select_seq(by).unique()
        known = self._counts.find(keys)
        known = keys.clear().with_columns_seq(pl.lit(0, pl.Int64).alias(_COUNT)) if known is None else known.select_seq(*by, _COUNT)
        counts = self._joined(keys, known, _COUNT)
        # Records of the same time have no order of their own: their contents decide, not their arrival.
        contents = [name for name in released.columns if name not in (*by, TIME)]
        order = [contents_of(contents)] if contents else []
        placed = self._joined(released.sort(TIME, *order), counts, _COUNT).with_columns_seq(
            (pl.col(_COUNT) + pl.int_range(pl.len()).over(by)).alias(_PLACE)
        )
        extent = {START: pl.col(TIME).min(), STOP: pl.col(TIME).max()}
        fresh = partial(placed.with_columns_seq((pl.col(_PLACE) // spec.pane).alias(_PANE)), (*by, _PANE), spec.aggregates, extent)
        panes = self._with_open(fresh.select_seq(self._parts), counts)
        totals = placed.group_by(by).agg(pl.col(_PLACE).max() + 1, pl.col(_COUNT).first())
        full = self._full(panes, totals)
        self._keep(panes, totals, store)
        return full

    def _with_open(self, fresh: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
        """New panes, and the panes of the same keys that are still needed."""
        open_panes = self._panes.find(self._needed(counts, _COUNT).explode(_PANE, keep_nulls=False, empty_as_null=False))
        if open_panes is None:
            return fresh
        both = pl.concat([open_panes.select_seq(self._parts), fresh])
        return merged(both, (*self._by, _PANE), self._spec.aggregates, _EXTENT).select_seq(self._parts)

    def _needed(self, counts: pl.DataFrame, count: str) -> pl.DataFrame:
        """The panes of each key from the first window that is not full to the last record."""
        spec = self._spec
        first = pl.max_horizontal((pl.col(count) - spec.records).floordiv(spec.every) + 1, 0) * spec.every // spec.pane
        last = (pl.col(count) - 1).floordiv(spec.pane)
        return counts.select_seq(*self._by, pl.int_ranges(first, pl.max_horizontal(last + 1, first)).alias(_PANE))

    def _full(self, panes: pl.DataFrame, totals: pl.DataFrame) -> pl.DataFrame:
        """The windows that became full, each by the last of its panes."""
        spec = self._spec
        width = spec.records // spec.pane
        ordered = panes.sort(*self._by, _PANE)
        rolling = ordered.rolling(_PANE, period=f"{width}i", group_by=self._by)
        ends = rolled(rolling, (*self._by, _PANE), spec.aggregates, _EXTENT)
        ends = key_join(ends, totals, self._by, nulls_equal=True)
        end = (pl.col(_PANE) + 1) * spec.pane
        begins = end - spec.records
        whole = (end <= pl.col(_PLACE)) & (end > pl.col(_COUNT)) & (begins >= 0) & (begins % spec.every == 0)
        return ends.filter(whole).with_columns_seq((begins // spec.every).alias(_WINDOW))

    def _keep(self, panes: pl.DataFrame, totals: pl.DataFrame, store: Store) -> None:
        needed = self._needed(totals, _PLACE).explode(_PANE, keep_nulls=False, empty_as_null=False)
        place = [*self._by, _PANE]
        kept = panes.join(needed, on=place, how="semi", nulls_equal=True).with_columns_seq(pl.lit(False).alias(GONE))
        over = panes.join(needed, on=place, how="anti", nulls_equal=True).with_columns_seq(pl.lit(True).alias(GONE))
        self._panes.put(pl.concat([kept, over]), store)
        self._counts.put(totals.select_seq(*self._by, pl.col(_PLACE).alias(_COUNT), pl.lit(False).alias(GONE)), store)

    def _rest(self, store: Store) -> list[pl.DataFrame]:
        """The windows that are not full when the input ends."""
        spec, panes, counts = self._spec, self._panes.all(), self._counts.all()
        if counts is None:
            return []
        self._counts.put(counts.with_columns_seq(pl.lit(True).alias(GONE)), store)
        if panes is None:
            return []
        self._panes.put(panes.with_columns_seq(pl.lit(True).alias(GONE)), store)
        first = pl.max_horizontal((pl.col(_COUNT) - spec.records).floordiv(spec.every) + 1, 0)
        begun = counts.select_seq(*self._by, pl.int_ranges(first, (pl.col(_COUNT) - 1) // spec.every + 1).alias(_WINDOW))
        begun = begun.explode(_WINDOW, keep_nulls=False, empty_as_null=False)
        inside = key_join(panes, begun, self._by, nulls_equal=True)
        inside = inside.filter(pl.col(_PANE) * spec.pane >= pl.col(_WINDOW) * spec.every)
        return [merged(inside, (*self._by, _WINDOW), spec.aggregates, _EXTENT)]

    def _finish(self, windows: pl.DataFrame) -> pl.DataFrame:
        return windows.select_seq(
            *self._by,
            pl.col(START).cast(MOMENT).alias("window_start"),
            pl.col(STOP).cast(MOMENT).alias("window_end"),
            pl.col(_WINDOW).cast(pl.Int64).alias("window_number"),
            *finishes(self._spec.aggregates),
            pl.lit("on-time").alias("pane"),
            pl.lit(0, pl.Int32).alias("revision"),
            TIME,
        )

    def _joined(self, left: pl.DataFrame, right: pl.DataFrame, column: str) -> pl.DataFrame:
        found = key_join(left, right, self._by, "left", nulls_equal=True)
        return found.with_columns_seq(pl.col(column).fill_null(0))


@windowed.register
def _(window: Count, emission: Emission) -> CountSpec:
    return CountSpec(window.records, window.every, emission.by, emission.aggregates, emission.until)
