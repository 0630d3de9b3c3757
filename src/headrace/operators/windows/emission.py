"""Emission of windows: early, on-time and late panes, accumulated or in parts, with retraction of earlier panes.

It works on frames with one window in each row: key, bounds, accumulators, and the record of its emitted panes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.partials import ROWS, accumulators, finishes, merged, of_no_records
from headrace.operators.changes import TIME, added, retracted
from headrace.operators.contract import START, STOP
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.key_join import key_join
from headrace.plan.windows.emit import DISCARDING, RETRACTING

# Records since the last pane, panes so far, the event time of the last record, and the emitted pane that is not retracted.
FRESH, PANES, LAST, GIVEN = "_fresh", "_panes", "_last", "_given"
# The contents were emitted in a pane and are not kept.
SPENT = "_spent"
BOOK = (START, STOP, FRESH, PANES, LAST, GIVEN, SPENT)
# The moments at which time alone changes a window: its end, and the end of its correction period.
DUE = "_due"
# Windows with records that no pane has shown yet, as rows that are due at the moment `NEWS`.
NEWS = 0
WITH_NEWS = pl.when(pl.col(FRESH) > 0).then(NEWS)
_PANE, _FIRES, _AGAIN = "_pane", "_fires", "_again"
# The names of the pane that is emitted when the watermark passes the end of a window.
ON_TIME = ("on-time", "idle")


@dataclass(frozen=True)
class Trigger:
    """When panes are emitted, in microseconds of event time. `early`: the interval before a window's end; `every`: or after this many
    records; `late`: the interval after it, zero: with every late record."""

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
    """The panes of windows with these aggregates by key, which may be corrected for `until` microseconds after their end.

    `grows`: the end of a window moves with its records, as for a session. `arguments` are the types of the columns that the aggregates
    read.
    """

    by: tuple[str, ...]
    aggregates: tuple[EvaluatedCall, ...]
    until: int = 0
    trigger: Trigger = Trigger()
    grows: bool = False
    arguments: tuple[tuple[str, pl.DataType], ...] = ()

    @property
    def contents(self) -> list[str]:
        return accumulators(self.aggregates)

    @property
    def columns(self) -> list[str]:
        return [*self.by, *BOOK, *self.contents]

    def opened(self, partial: pl.DataFrame, *marks: str) -> pl.DataFrame:
        """Partial results with bounds, as windows without an emitted pane; `marks` are columns that stay."""
        book = (pl.lit(0, pl.Int32).alias(PANES), pl.lit([], self._given_type(partial)).alias(GIVEN), pl.lit(False).alias(SPENT))
        return partial.with_columns_seq(book).select_seq(*self.columns, *marks)

    def merged(self, windows: pl.DataFrame, key: Sequence[str], together: str = START) -> pl.DataFrame:
        """Windows of the same key merged into one: their contents, and one record of their panes."""
        place, begin = [*key, together], f"{START} "
        book = {
            begin: pl.col(START).min(), STOP: pl.col(STOP).max(), FRESH: pl.col(FRESH).sum(), PANES: pl.col(PANES).max(),
            LAST: pl.col(LAST).max(), SPENT: pl.col(SPENT).all(),
            GIVEN: pl.col(GIVEN).explode(keep_nulls=False, empty_as_null=False) if self._remembers else pl.col(GIVEN).first(),
        }  # fmt: skip
        if self.trigger.mode == DISCARDING:
            contents = merged(windows.filter(~pl.col(SPENT)), place, self.aggregates)
            kept = windows.group_by(place).agg(column.alias(name) for name, column in book.items())
            found = key_join(kept, contents, place, "left", nulls_equal=True)
        else:
            found = merged(windows, place, self.aggregates, book)
        return found.with_columns_seq(pl.col(begin).alias(START)).select_seq(self.columns)

    def looks_at_all(self, time: EpochTime) -> bool:
        """Whether windows without new records in an epoch may fire in it although they are not due."""
        return _ticks(self.trigger.early, time) or _ticks(self.trigger.late or None, time)

    def emitted(self, windows: pl.DataFrame, time: EpochTime) -> tuple[list[pl.DataFrame], pl.DataFrame]:
        """The changelog of the windows that fire, and the windows to keep, with the times at which they are due."""
        marked = windows.with_columns_seq(self._fires(time).alias(_FIRES), self._pane(time).alias(_PANE))
        present = ~pl.col(SPENT) & (pl.col(ROWS) > 0)
        if self.trigger.mode == DISCARDING:
            marked, present = self._with_empty(marked), ~pl.col(SPENT)
        results = []
        if self._remembers:
            marked = self._outgrown(marked, time)
            withdrawn = marked.filter(pl.col(_AGAIN) & (pl.col(GIVEN).list.len() > 0)).select_seq(*self.by, GIVEN)
            if not withdrawn.is_empty():
                results.append(retracted(self._finish(withdrawn.explode(GIVEN).unnest(GIVEN))))
        firing = marked.filter(pl.col(_FIRES) & present)
        if not firing.is_empty():
            results.append(added(self._finish(firing)))
        return results, self._kept(marked.filter(pl.col(STOP) + self.until > time.after), present, time)

    def _with_empty(self, marked: pl.DataFrame) -> pl.DataFrame:
        """Give windows that end without new records the contents of no records: their last on-time pane says that they are complete."""
        empty = pl.col(SPENT) & pl.col(_FIRES) & pl.col(_PANE).is_in(ON_TIME)
        if not marked.select_seq(empty.any()).item():
            return marked
        nothing = of_no_records(self.aggregates, self.arguments)
        filled = [
            pl.when(empty).then(pl.lit(nothing.get_column(name)).cast(marked.schema[name])).otherwise(pl.col(name)).alias(name)
            for name in self.contents
        ]
        return marked.with_columns_seq(*filled, (pl.col(SPENT) & ~empty).alias(SPENT))

    def _outgrown(self, marked: pl.DataFrame, time: EpochTime) -> pl.DataFrame:
        """Mark the windows whose panes are retracted: those that fire, and open ones with a pane whose end has passed.

        Time would not come back to such a pane: later steps close the windows that its time is in. With early panes, a new one replaces it
        at once.
        """
        if not self.grows:
            return marked.with_columns_seq(pl.col(_FIRES).alias(_AGAIN))
        outgrown = (pl.col(STOP) > time.after) & (_earliest_end() <= time.after).fill_null(False)
        fires = pl.col(_FIRES) | outgrown if self._early else pl.col(_FIRES)
        return marked.with_columns_seq(fires.alias(_FIRES), (pl.col(_FIRES) | outgrown).alias(_AGAIN))

    def _kept(self, marked: pl.DataFrame, present: pl.Expr, time: EpochTime) -> pl.DataFrame:
        gone_out = pl.col(_FIRES) & present
        kept = marked
        if self._remembers:
            said = pl.concat_list(pl.struct(START, STOP, LAST, PANES, _PANE, *self.contents))
            given = pl.when(gone_out).then(said).when(pl.col(_AGAIN)).then(pl.lit([], marked.schema[GIVEN])).otherwise(pl.col(GIVEN))
            kept = kept.with_columns_seq(given.alias(GIVEN))
        if self.trigger.mode == DISCARDING:
            spent = pl.col(SPENT) | pl.col(_FIRES)
            emptied = [pl.when(~spent).then(pl.col(name)).alias(name) for name in self.contents]
            kept = kept.with_columns_seq(*emptied, spent.alias(SPENT))
        counted = pl.col(PANES) + gone_out.cast(pl.Int32)
        fresh = pl.when(pl.col(_FIRES)).then(0).otherwise(pl.col(FRESH))
        # The marks decide both, so the order in which columns change does not matter.
        book = marked.select_seq(counted.alias(PANES), fresh.alias(FRESH))
        return kept.with_columns_seq(*book.get_columns(), self._due(time).alias(DUE)).select_seq(*self.columns, DUE)

    def _due(self, time: EpochTime) -> pl.Expr:
        open_until = pl.min_horizontal(STOP, _earliest_end()) if self.grows and self._remembers and self._early else pl.col(STOP)
        return pl.when(pl.col(STOP) <= time.after).then(pl.col(STOP) + self.until).otherwise(open_until)

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
        on_time = pl.lit(ON_TIME[time.idle])
        return pl.when(closed).then(pl.lit("late")).when(closes).then(on_time).otherwise(pl.lit("early"))

    @property
    def _early(self) -> bool:
        return self.trigger.early is not None or self.trigger.every is not None

    @property
    def _remembers(self) -> bool:
        return self.trigger.mode == RETRACTING and (self.until > 0 or self._early)

    def _given_type(self, partial: pl.DataFrame) -> pl.DataType:
        if not self._remembers:
            return pl.List(pl.Boolean)
        kinds = {START: pl.Int64, STOP: pl.Int64, LAST: pl.Int64, PANES: pl.Int32, _PANE: pl.String}
        return pl.List(pl.Struct(kinds | {name: partial.schema[name] for name in self.contents}))

    def _finish(self, windows: pl.DataFrame) -> pl.DataFrame:
        endless = pl.col(STOP) >= END
        return windows.select_seq(
            *self.by,
            pl.when(pl.col(START) > BEGINNING).then(pl.col(START)).cast(MOMENT).alias("window_start"),
            pl.when(~endless).then(pl.col(STOP)).cast(MOMENT).alias("window_end"),
            *finishes(self.aggregates),
            pl.col(_PANE).alias("pane"),
            pl.col(PANES).cast(pl.Int32).alias("revision"),
            pl.when(endless).then(pl.col(LAST)).otherwise(pl.col(STOP) - 1).alias(TIME),
        )


def _earliest_end() -> pl.Expr:
    """The earliest end of an emitted pane that is not retracted; null where there is none."""
    return pl.col(GIVEN).list.eval(pl.element().struct.field(STOP)).list.min()


def _ticks(period: int | None, time: EpochTime) -> bool:
    """Whether the watermark passed a multiple of a period in an epoch."""
    return period is not None and time.after // period > time.before // period
