"""Windows whose bounds follow from the time alone, with early and late panes: one row for each window and key."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from headrace.operators.aggregates.partials import merged, partial
from headrace.operators.changes import TIME
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions import REASON
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.operators.windows.calendar import CalendarLayout
from headrace.operators.windows.emission import DUE, FRESH, LAST, NEWS, WITH_NEWS, Emission
from headrace.operators.windows.layouts import CELL, ByFunction, Whole, WindowLayout
from headrace.operators.windows.registry import windowed
from headrace.plan.windows.calendar import Calendar
from headrace.plan.windows.kinds import Custom, Global


@dataclass(frozen=True)
class IntervalSpec:
    """The windows of a layout, and their emission."""

    layout: WindowLayout
    emission: Emission

    @property
    def by(self) -> tuple[str, ...]:
        return self.emission.by

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Partial results of records by cell and key."""
        times = records.get_column(TIME)
        start, stop = self.layout.bounds(times)
        bad = None
        if start.null_count():
            known = start.is_not_null()
            bad = records.filter(~known).with_columns_seq(pl.lit("no window contains its time").alias(REASON))
            records, times, start, stop = records.filter(known), times.filter(known), start.filter(known), stop.filter(known)
        is_late = stop + self.emission.until <= time.before
        late = None
        if is_late.any():
            late = records.with_columns_seq(start.alias(START), stop.alias(STOP)).filter(is_late)
            records, times = records.filter(~is_late), times.filter(~is_late)
        missed = self.layout.partly_closed(times, time.before - self.emission.until)
        cells = records.with_columns_seq(self.layout.cells(times).alias(CELL))
        extra = {FRESH: pl.len().cast(pl.Int64), LAST: pl.col(TIME).max()}
        return Entered(partial(cells, (CELL, *self.by), self.emission.aggregates, extra), records.height, late, bad, partly_late=missed)

    def closing(self, moment: int) -> int:
        return self.layout.closing(moment)

    def fresh(self) -> Intervals:
        return Intervals(self)


class Intervals(OneState[KeyedState]):
    """The windows of one shard."""

    def __init__(self, spec: IntervalSpec) -> None:
        self._key = [*spec.by, START]
        super().__init__(KeyedState("window", self._key, due=pl.col(DUE), news=WITH_NEWS))
        self._layout, self._emission = spec.layout, spec.emission

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Merge partial results, and emit the panes of windows that fire."""
        parts = [self._opened(arrived, time)] if arrived.rows else []
        old = self._touched(parts, time)
        if old is not None:
            parts.append(old.select_seq(self._emission.columns))
        parts = [part for part in parts if not part.is_empty()]
        if not parts:
            return Outcome()
        windows = self._emission.merged(pl.concat(parts), self._emission.by) if len(parts) > 1 else parts[0]
        results, kept = self._emission.emitted(windows, time)
        self._keep(kept, old, store)
        return Outcome(results)

    def _opened(self, arrived: Arrived, time: EpochTime) -> pl.DataFrame:
        emission = self._emission
        windows = self._layout.spread(pl.concat(arrived.rows)).filter(pl.col(STOP) + emission.until > time.before)
        extra = {STOP: pl.col(STOP).max(), FRESH: pl.col(FRESH).sum(), LAST: pl.col(LAST).max()}
        return emission.opened(merged(windows, self._key, emission.aggregates, extra))

    def _touched(self, fresh: list[pl.DataFrame], time: EpochTime) -> pl.DataFrame | None:
        """The kept windows that have new records, are due, or may fire when all are asked."""
        found = [self._state.find(part.select_seq(self._key)) for part in fresh]
        found.append(self._state.reached("due", time.after))
        if self._emission.looks_at_all(time):
            found.append(self._state.reached("news", NEWS))
        rows = [part for part in found if part is not None]
        return pl.concat(rows).unique(subset=self._key, maintain_order=True) if rows else None

    def _keep(self, kept: pl.DataFrame, old: pl.DataFrame | None, store: Store) -> None:
        rows = kept.select_seq(*self._emission.columns, DUE, pl.lit(False).alias(GONE))
        if old is not None:
            over = old.join(rows, on=self._key, how="anti", nulls_equal=True)
            rows = pl.concat([rows, over.with_columns_seq(pl.lit(True).alias(GONE)).select_seq(rows.columns)])
        self._state.put(rows, store)


@windowed.register
def _(window: Calendar, emission: Emission) -> IntervalSpec:
    return IntervalSpec(CalendarLayout(window.unit, window.count, window.zone, window.offset), emission)


@windowed.register
def _(_: Global, emission: Emission) -> IntervalSpec:
    # Nothing comes after the end of all time.
    return IntervalSpec(Whole(), replace(emission, until=0))


@windowed.register
def _(window: Custom, emission: Emission) -> IntervalSpec:
    return IntervalSpec(ByFunction(window.function), emission)
