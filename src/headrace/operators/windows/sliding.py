"""Sliding windows: for each event, the events of its key in the stretch of time that ends with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import finishes, merged, merged_duplicates, partial, rolled
from headrace.operators.aggregates.running_totals import RunningTotals
from headrace.operators.changes import TIME, added, retracted
from headrace.operators.contract import START, STOP, Arrived, Entered, Outcome
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.key_join import key_join
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.row_lookup import TimeSpan
from headrace.operators.state.store import Store
from headrace.operators.state.timed_rows import TimedRows
from headrace.operators.windows.emission import Emission
from headrace.operators.windows.registry import windowed
from headrace.operators.windows.revisions import AT, HAD, REVISION, WAS, Revisions
from headrace.plan.windows.kinds import Sliding

_NEWS, _END, _PAIRS = "_news", "_end", "_number"
# The events may be paired this many times with windows.
_FEW = 4
# The events of some keys are looked up if there are this many times as many events in all; otherwise a scan of all is faster.
_MANY = 16


@dataclass(frozen=True)
class SlidingSpec:
    """Windows of `length` that end with an event, both ends included, corrected until `until` after it; in microseconds."""

    length: int
    by: tuple[str, ...]
    aggregates: tuple[EvaluatedCall, ...]
    until: int = 0

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Partial results of records by time and key. The last window that can contain a record is that of an event `length` later."""
        is_late = records.get_column(TIME) < time.before - self.until - self.length
        late = None
        if is_late.any():
            late = records.filter(is_late).with_columns_seq((pl.col(TIME) - self.length).alias(START), pl.col(TIME).alias(STOP))
            records = records.filter(~is_late)
        # Their own window is closed, but the windows of later events are not.
        behind = int((records.get_column(TIME) < time.before - self.until).sum())
        return Entered(partial(records, (TIME, *self.by), self.aggregates), records.height, late, partly_late=behind)

    def closing(self, moment: int) -> int:
        return moment + 1

    def fresh(self) -> Slides:
        return Slides(self)

    def windows(self, events: pl.DataFrame, **extra: pl.Expr) -> pl.DataFrame:
        """The contents of each event's window."""
        rolling = events.sort(*self.by, TIME).rolling(TIME, period=f"{self.length}i", closed="both", group_by=self.by)
        return rolled(rolling, (*self.by, TIME), self.aggregates, extra)

    def windows_of(self, due: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
        """The contents of the windows of some events only, among all events of their keys: each event is paired with those windows."""
        ends = due.select_seq(*self.by, pl.col(TIME).alias(_END))
        pairs = key_join(events.sort(*self.by, TIME), ends, self.by, nulls_equal=True)
        behind = pairs.get_column(_END) - pairs.get_column(TIME)
        inside = pairs.filter(behind.is_between(0, self.length)).drop(TIME).rename({_END: TIME})
        return merged(inside, (*self.by, TIME), self.aggregates)


class Slides(SeveralStates):
    """The events of one shard that a window may still need: one result for each time of a key, when the watermark has passed it."""

    def __init__(self, spec: SlidingSpec) -> None:
        self._spec = spec
        self._by = list(spec.by)
        self._place = [*spec.by, TIME]
        self._events = TimedRows("event", spec.by, self._merge)
        self._revisions = Revisions(spec.by)
        self._totals = RunningTotals(spec.by, spec.aggregates)
        self._finishes = finishes(spec.aggregates)
        super().__init__(self._events, self._revisions, self._totals)

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Correct the windows that late events are in, then emit those that the watermark has passed.

        An event whose own window is closed has none, but is in the windows of later events that are open.
        """
        results = []
        if arrived.rows:
            fresh = self._merge(pl.concat(arrived.rows))
            late = fresh.filter(fresh.get_column(TIME) < time.before)
            before = self._stretch(late, time) if self._spec.until and not late.is_empty() else None
            self._events.add(fresh)
            if not late.is_empty():
                results += self._correct(late, before, time) if self._spec.until else []
                inside = late.filter(pl.col(TIME) >= time.before - self._spec.length - 1)
                if self._totals.suit(inside) and inside.height:
                    self._totals.include(inside, store)
        results += self._fire(time, store)
        limit = time.after - self._spec.until
        self._events.save(limit - self._spec.length - 1, store)
        self._revisions.save(limit, time, store)
        return Outcome(results)

    def _fire(self, time: EpochTime, store: Store) -> list[pl.DataFrame]:
        due = self._events.between(time.before, time.after)
        shift = self._spec.length + 1
        windows: pl.DataFrame | None
        leaving = self._events.between(time.before - shift, time.after - shift) if self._totals.invertible else None
        known = due if due is not None else leaving
        if known is not None and self._totals.suit(known):
            gone = known.clear() if leaving is None else leaving.with_columns_seq(pl.col(TIME) + shift)
            windows, unknown = self._totals.advance(known.clear() if due is None else due, gone, store)
            if unknown.height:
                summed = self._summed(unknown, time).join(unknown, on=self._place, how="semi", nulls_equal=True)
                windows = pl.concat([windows, summed[windows.columns]])
        else:
            windows = None if due is None else self._summed(due, time)
        if windows is None or not windows.height:
            return []
        return [added(self._finish(windows, pl.lit("idle" if time.idle else "on-time"), pl.lit(0)))]

    def _summed(self, due: pl.DataFrame, time: EpochTime) -> pl.DataFrame:
        """The windows that end in this epoch, for the given keys, summed from their events."""
        keys = due[self._by].unique()
        mine = self._between(keys, time.before - self._spec.length, time.after)
        # Where keys have many due events, as when a job catches up, all windows at once are quicker.
        if due.height == keys.height or self._pairs(due, mine) <= _FEW * mine.height:
            return self._spec.windows_of(due[self._place], mine)
        return self._spec.windows(mine).filter(pl.col(TIME) >= time.before)

    def _between(self, keys: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
        """The events of the given keys, of which each has some, whose time is at least `low` and less than `high`."""
        if _MANY * keys.height < self._events.size.rows and not any(column.null_count() for column in keys):
            found = self._events.find(keys, TimeSpan(np.full(keys.height, low), np.full(keys.height, high - 1)))
            assert found is not None
            return self._merge(found.rows)
        events = self._events.between(low, high)
        assert events is not None
        return self._of(events, keys)

    def _pairs(self, due: pl.DataFrame, events: pl.DataFrame) -> int:
        """The number of pairs of a due event and an event of its key."""
        counted = key_join(due[self._by], events.group_by(self._by).len(_PAIRS), self._by, nulls_equal=True)
        return int(counted.get_column(_PAIRS).sum())

    def _stretch(self, late: pl.DataFrame, time: EpochTime) -> pl.DataFrame | None:
        """The events in already emitted windows that may contain late events of their key."""
        low, high = late.select_seq(low=pl.col(TIME).min(), high=pl.col(TIME).max()).row(0)
        events = self._events.between(low - self._spec.length, min(high + self._spec.length + 1, time.before))
        return None if events is None else self._of(events, late)

    def _correct(self, late: pl.DataFrame, before: pl.DataFrame | None, time: EpochTime) -> list[pl.DataFrame]:
        now = self._stretch(late, time)
        assert now is not None
        news = late.select_seq(*self._place, pl.lit(1).alias(_NEWS))
        marked = key_join(now, news, self._place, "left", nulls_equal=True).with_columns_seq(pl.col(_NEWS).fill_null(0))
        is_open = pl.col(TIME) >= time.before - self._spec.until
        windows = self._spec.windows(marked, **{_NEWS: pl.col(_NEWS).sum()}).filter(is_open & (pl.col(_NEWS) > 0)).drop(_NEWS)
        old = windows.clear() if before is None else self._spec.windows(before)
        had = old.select_seq(*self._place, pl.lit(True).alias(HAD))
        windows = key_join(windows, had, self._place, "left", nulls_equal=True).with_columns_seq(pl.col(HAD).fill_null(False))
        if windows.is_empty():
            return []
        numbered = self._revisions.numbered(windows.with_columns_seq((pl.col(TIME) + 1).alias(AT)))
        said = numbered.filter(HAD).select_seq(*self._place, REVISION, WAS)
        gone = key_join(old, said, self._place, nulls_equal=True)
        results = [retracted(self._finish(gone, pl.col(WAS), pl.col(REVISION) - 1))] if gone.height else []
        return [*results, added(self._finish(numbered, pl.lit("late"), pl.col(REVISION)))]

    def _of(self, events: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        """Events of the given keys."""
        return events.join(others[self._by].unique(), on=self._by, how="semi", nulls_equal=True)

    def _finish(self, windows: pl.DataFrame, pane: pl.Expr, revision: pl.Expr) -> pl.DataFrame:
        return windows.select_seq(
            *self._by,
            (pl.col(TIME) - self._spec.length).cast(MOMENT).alias("window_start"),
            pl.col(TIME).cast(MOMENT).alias("window_end"),
            *self._finishes,
            pane.alias("pane"),
            revision.cast(pl.Int32).alias("revision"),
            TIME,
        )

    def _merge(self, frame: pl.DataFrame) -> pl.DataFrame:
        return merged_duplicates(frame, self._place, self._spec.aggregates)


@windowed.register
def _(window: Sliding, emission: Emission) -> SlidingSpec:
    return SlidingSpec(microseconds(window.length), emission.by, emission.aggregates, emission.until)
