"""Windows whose bounds are known from the time alone, with early and late panes: a row for each window and key."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from headrace.operators.aggregates import merged, partial
from headrace.operators.calendar import CalendarLayout
from headrace.operators.changes import TIME
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome
from headrace.operators.emission import DUE, FRESH, LAST, Emission
from headrace.operators.expressions import REASON
from headrace.operators.keyed import GONE, KeyedState
from headrace.operators.layouts import CELL, ByFunction, Layout, Whole
from headrace.operators.memory import Memory
from headrace.operators.store import Store
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.operators.windowing import windowed
from headrace.plan.calendar import Calendar
from headrace.plan.windows import Custom, Global


@dataclass(frozen=True)
class IntervalSpec:
    """The windows of a layout, and how they give out results."""

    layout: Layout
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
            bad = records.filter(~known).with_columns(pl.lit("no window holds its time").alias(REASON))
            records, times, start, stop = records.filter(known), times.filter(known), start.filter(known), stop.filter(known)
        is_late = stop + self.emission.until <= time.before
        late = None
        if is_late.any():
            late = records.with_columns(start.alias(START), stop.alias(STOP)).filter(is_late)
            records, times = records.filter(~is_late), times.filter(~is_late)
        cells = records.with_columns(self.layout.cells(times).alias(CELL))
        extra = {FRESH: pl.len().cast(pl.Int64), LAST: pl.col(TIME).max()}
        return Entered(partial(cells, (CELL, *self.by), self.emission.aggregates, extra), records.height, late, bad)

    def closing(self, moment: int) -> int:
        return self.layout.closing(moment)

    def fresh(self) -> Intervals:
        return Intervals(self)


class Intervals(Memory[KeyedState]):
    """The windows of one shard."""

    def __init__(self, spec: IntervalSpec) -> None:
        self._key = [*spec.by, START]
        super().__init__(KeyedState("window", self._key))
        self._layout, self._emission = spec.layout, spec.emission
        # No window is due before this. Looking for those that are reads every row, so it is done only when there can be some.
        self._quiet_until = BEGINNING

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._quiet_until = BEGINNING

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Take in partial results, and give out the panes of windows that fire."""
        parts = [self._opened(arrived, time)] if arrived.rows else []
        old = self._touched(parts, time)
        if old is not None:
            parts.append(old.select(self._emission.columns))
        parts = [part for part in parts if not part.is_empty()]
        if not parts:
            return Outcome()
        windows = self._emission.united(pl.concat(parts), self._emission.by) if len(parts) > 1 else parts[0]
        results, kept = self._emission.given_out(windows, time)
        self._keep(kept, old, store)
        return Outcome(results)

    def _opened(self, arrived: Arrived, time: EpochTime) -> pl.DataFrame:
        emission = self._emission
        windows = self._layout.spread(pl.concat(arrived.rows)).filter(pl.col(STOP) + emission.until > time.before)
        extra = {STOP: pl.col(STOP).max(), FRESH: pl.col(FRESH).sum(), LAST: pl.col(LAST).max()}
        return emission.opened(merged(windows, self._key, emission.aggregates, extra))

    def _touched(self, fresh: list[pl.DataFrame], time: EpochTime) -> pl.DataFrame | None:
        """The kept windows that got records, are due, or have something to say when all are asked."""
        found = [self._state.find(part.select(self._key)) for part in fresh]
        if time.after >= self._quiet_until:
            found.append(self._state.where(pl.col(DUE) <= time.after))
            self._quiet_until = self._state.least(DUE, pl.col(DUE) > time.after) or END
        if self._emission.looks_at_all(time):
            found.append(self._state.where(pl.col(FRESH) > 0))
        rows = [part for part in found if part is not None]
        return pl.concat(rows).unique(subset=self._key, maintain_order=True) if rows else None

    def _keep(self, kept: pl.DataFrame, old: pl.DataFrame | None, store: Store) -> None:
        rows = kept.select(*self._emission.columns, DUE, pl.lit(False).alias(GONE))
        earliest = rows.get_column(DUE).min()
        if isinstance(earliest, int):
            self._quiet_until = min(self._quiet_until, earliest)
        if old is not None:
            over = old.join(rows, on=self._key, how="anti", nulls_equal=True)
            rows = pl.concat([rows, over.with_columns(pl.lit(True).alias(GONE)).select(rows.columns)])
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
