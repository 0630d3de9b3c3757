"""When windows give out results and what those say: early, on time and late, whole or in parts, with what was said before taken back.

It works on frames of windows, one a row: key, bounds, accumulators, and the book that is kept of what was given out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregate import Aggregate
from headrace.operators.aggregates import ROWS, accumulators, finishes, merged
from headrace.operators.changes import TIME, added, retracted
from headrace.operators.contract import START, STOP
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.plan.emit import DISCARDING, RETRACTING

# Records since the last pane, panes so far, the event time of the last record, and what was given out and still stands.
FRESH, PANES, LAST, GIVEN = "_fresh", "_panes", "_last", "_given"
# The contents went out in a pane and are not kept.
SPENT = "_spent"
BOOK = (START, STOP, FRESH, PANES, LAST, GIVEN, SPENT)
# When time alone changes a window: at its end, and when it is past correction.
DUE = "_due"
_PANE, _FIRES, _AGAIN = "_pane", "_fires", "_again"


@dataclass(frozen=True)
class Trigger:
    """When panes are given out, in microseconds of event time. `early`: how often before a window's end; `every`: or after so
    many records; `late`: how often after it, zero: whenever something came."""

    early: int | None = None
    every: int | None = None
    late: int = 0
    mode: str = RETRACTING

    @property
    def plain(self) -> bool:
        """One pane on time, and one for each late batch that replaces it."""
        return self == Trigger()


@dataclass(frozen=True)
class Emission:
    """The panes of windows with these aggregates by key, which may be corrected for `until` microseconds after their end."""

    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    until: int = 0
    trigger: Trigger = Trigger()

    @property
    def contents(self) -> list[str]:
        return accumulators(self.aggregates)

    @property
    def columns(self) -> list[str]:
        return [*self.by, *BOOK, *self.contents]

    def opened(self, partial: pl.DataFrame, *marks: str) -> pl.DataFrame:
        """Partial results with bounds as windows of which nothing was given out; `marks` are columns that stay."""
        book = (pl.lit(0, pl.Int32).alias(PANES), pl.lit([], self._given_type(partial)).alias(GIVEN), pl.lit(False).alias(SPENT))
        return partial.with_columns(book).select(*self.columns, *marks)

    def united(self, windows: pl.DataFrame, key: Sequence[str], together: str = START) -> pl.DataFrame:
        """Windows of the same key as one: their contents merged, and one book kept."""
        place, begin = [*key, together], f"{START} "
        book = {
            begin: pl.col(START).min(), STOP: pl.col(STOP).max(), FRESH: pl.col(FRESH).sum(), PANES: pl.col(PANES).max(),
            LAST: pl.col(LAST).max(), SPENT: pl.col(SPENT).all(),
            GIVEN: pl.col(GIVEN).explode(keep_nulls=False, empty_as_null=False) if self._remembers else pl.col(GIVEN).first(),
        }  # fmt: skip
        if self.trigger.mode == DISCARDING:
            contents = merged(windows.filter(~pl.col(SPENT)), place, self.aggregates)
            kept = windows.group_by(place).agg(column.alias(name) for name, column in book.items())
            found = kept.join(contents, on=place, how="left", nulls_equal=True)
        else:
            found = merged(windows, place, self.aggregates, book)
        return found.with_columns(pl.col(begin).alias(START)).select(self.columns)

    def looks_at_all(self, time: EpochTime) -> bool:
        """Whether windows that got nothing in an epoch may fire in it, though they are not due."""
        return _ticks(self.trigger.early, time) or _ticks(self.trigger.late or None, time)

    def given_out(self, windows: pl.DataFrame, time: EpochTime) -> tuple[list[pl.DataFrame], pl.DataFrame]:
        """The changelog of the windows that fire, and the windows that are kept then, with when they are due."""
        marked = windows.with_columns(self._fires(time).alias(_FIRES), self._pane(time).alias(_PANE))
        present = ~pl.col(SPENT) & (pl.col(ROWS) > 0)
        results = []
        if self._remembers:
            reopened = (
                (pl.col(STOP) > time.after)
                & (pl.col(FRESH) > 0)
                & pl.col(GIVEN).list.eval(pl.element().struct.field(STOP) <= time.before).list.any()
            )
            marked = marked.with_columns((pl.col(_FIRES) | reopened).alias(_AGAIN))
            withdrawn = marked.filter(pl.col(_AGAIN) & (pl.col(GIVEN).list.len() > 0)).select(*self.by, GIVEN)
            if not withdrawn.is_empty():
                results.append(retracted(self._finish(withdrawn.explode(GIVEN).unnest(GIVEN))))
        firing = marked.filter(pl.col(_FIRES) & present)
        if not firing.is_empty():
            results.append(added(self._finish(firing)))
        return results, self._kept(marked.filter(pl.col(STOP) + self.until > time.after), present, time)

    def _kept(self, marked: pl.DataFrame, present: pl.Expr, time: EpochTime) -> pl.DataFrame:
        gone_out = pl.col(_FIRES) & present
        kept = marked
        if self._remembers:
            said = pl.concat_list(pl.struct(START, STOP, LAST, PANES, _PANE, *self.contents))
            given = pl.when(gone_out).then(said).when(pl.col(_AGAIN)).then(pl.lit([], marked.schema[GIVEN])).otherwise(pl.col(GIVEN))
            kept = kept.with_columns(given.alias(GIVEN))
        if self.trigger.mode == DISCARDING:
            spent = pl.col(SPENT) | pl.col(_FIRES)
            emptied = [pl.when(~spent).then(pl.col(name)).alias(name) for name in self.contents]
            kept = kept.with_columns(*emptied, spent.alias(SPENT))
        counted = pl.col(PANES) + gone_out.cast(pl.Int32)
        fresh = pl.when(pl.col(_FIRES)).then(0).otherwise(pl.col(FRESH))
        due = pl.when(pl.col(STOP) <= time.after).then(pl.col(STOP) + self.until).otherwise(pl.col(STOP))
        # All of this is decided by the marks, so the order in which columns change does not matter.
        book = marked.select(counted.alias(PANES), fresh.alias(FRESH), due.alias(DUE))
        return kept.with_columns(book.get_columns()).select(*self.columns, DUE)

    def _fires(self, time: EpochTime) -> pl.Expr:
        trigger, fresh = self.trigger, pl.col(FRESH)
        closing = (pl.col(STOP) > time.before) & (pl.col(STOP) <= time.after)
        corrected = (pl.col(STOP) <= time.before) & (fresh > 0)
        if trigger.late and not _ticks(trigger.late, time):
            corrected &= pl.col(STOP) + self.until <= time.after
        early = pl.lit(False)
        if _ticks(trigger.early, time):
            early = fresh > 0
        elif trigger.every is not None:
            early = fresh >= trigger.every
        return closing | corrected | ((pl.col(STOP) > time.after) & early)

    def _pane(self, time: EpochTime) -> pl.Expr:
        closed, closes = pl.col(STOP) <= time.before, pl.col(STOP) <= time.after
        on_time = pl.lit("idle" if time.idle else "on-time")
        return pl.when(closed).then(pl.lit("late")).when(closes).then(on_time).otherwise(pl.lit("early"))

    @property
    def _remembers(self) -> bool:
        trigger = self.trigger
        return trigger.mode == RETRACTING and (self.until > 0 or trigger.early is not None or trigger.every is not None)

    def _given_type(self, partial: pl.DataFrame) -> pl.DataType:
        if not self._remembers:
            return pl.List(pl.Boolean)
        kinds = {START: pl.Int64, STOP: pl.Int64, LAST: pl.Int64, PANES: pl.Int32, _PANE: pl.String}
        return pl.List(pl.Struct(kinds | {name: partial.schema[name] for name in self.contents}))

    def _finish(self, windows: pl.DataFrame) -> pl.DataFrame:
        moment = pl.Datetime("us", "UTC")
        endless = pl.col(STOP) >= END
        return windows.select(
            *self.by,
            pl.when(pl.col(START) > BEGINNING).then(pl.col(START)).cast(moment).alias("window_start"),
            pl.when(~endless).then(pl.col(STOP)).cast(moment).alias("window_end"),
            *finishes(self.aggregates),
            pl.col(_PANE).alias("pane"),
            pl.col(PANES).cast(pl.Int32).alias("revision"),
            pl.when(endless).then(pl.col(LAST)).otherwise(pl.col(STOP) - 1).alias(TIME),
        )


def _ticks(period: int | None, time: EpochTime) -> bool:
    """Whether the watermark passed a multiple of a period in an epoch."""
    return period is not None and time.after // period > time.before // period
