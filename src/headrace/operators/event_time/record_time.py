"""Event times of records in microseconds since 1970, computed as their stream declares it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl
import pyarrow as pa

from headrace.core.durations import spelled
from headrace.operators.changes import TIME
from headrace.operators.event_time.epoch_time import EARLIEST, LATEST
from headrace.operators.expressions import REASON, Compiled
from headrace.operators.expressions import compile as compiled_form
from headrace.plan.source_time import EventTime


@dataclass(frozen=True)
class ComputedTime:
    """The event time of one stream, ready to be computed."""

    said: str
    _compiled: Compiled
    max_ahead: timedelta | None = None
    """How much later than the wall clock a time may be."""

    @classmethod
    def of(cls, time: EventTime, max_ahead: timedelta | None = None) -> ComputedTime:
        # A column is used as it is: the most usual case costs nothing.
        column = time.column
        return cls(str(time), compiled_form(time.typed) if column is None else Compiled(pl.col(column), None), max_ahead)

    def times(self) -> pl.Expr:
        """The event time of each record, null where there is none."""
        time, error = self._compiled.value.cast(pl.Int64), self._compiled.error
        return (time if error is None else pl.when(error.is_null()).then(time)).alias(TIME)

    def judged(self, records: pl.DataFrame, limit: int = LATEST) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Records with `_time`, and those whose time is missing, before the year 2 or above `limit`, with the `_reason`."""
        found = records.with_columns_seq(self.times())
        times = found.get_column(TIME)
        # Looking first costs little; separating bad records copies all the others.
        if not times.null_count() and times.is_between(EARLIEST, limit).all():
            return found, None
        found = found.with_columns_seq(self._problem(limit).alias(REASON))
        good = found.get_column(REASON).is_null()
        return found.filter(good).drop(REASON), found.filter(~good)

    def _problem(self, limit: int) -> pl.Expr:
        time, error = pl.col(TIME), self._compiled.error
        failed = [] if error is None else [pl.lit(f"no event time in {self.said}: ") + error]
        rules = (
            pl.when(time.is_null()).then(pl.lit(f"no event time in {self.said}"))
            .when(time > limit).then(pl.lit(f"{self.said} is {self._too_late(limit)}"))
            .when(time < EARLIEST).then(pl.lit(f"{self.said} is before the year 2"))
        )  # fmt: skip
        return pl.coalesce([*failed, rules])

    def _too_late(self, limit: int) -> str:
        if limit >= LATEST or self.max_ahead is None:
            return "after the year 9997"
        return f"more than {spelled(self.max_ahead)} (max_ahead) later than the wall clock"


def times_of(time: EventTime, batch: pa.RecordBatch) -> pa.Array:
    """The event times of a batch as whole numbers, null where there is none. The batch has at least the columns that `time` reads."""
    if time.column is not None:
        return batch.column(time.column).cast(pa.int64())
    records = pl.from_arrow(pa.table({name: batch.column(name) for name in time.columns}))
    assert isinstance(records, pl.DataFrame)
    return records.select_seq(ComputedTime.of(time).times()).to_series().to_arrow()
