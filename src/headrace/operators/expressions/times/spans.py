"""Timestamps moved and subtracted by named units: timestampadd and timestampdiff."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.dtypes import MOMENT
from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.parts import CompiledTerm, Made, fault, operation
from headrace.operators.expressions.times import calendar
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.plan.expressions.terms import Apply

_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": MICROSECONDS_A_DAY, "week": 7 * MICROSECONDS_A_DAY,
}  # fmt: skip
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@operation("timestampadd")
def add(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    unit = str(term.options[0])
    start, number = (part.value.cast(pl.Int64) for part in parts)
    days = start.floordiv(MICROSECONDS_A_DAY)
    if unit in _MONTHS:
        moved = (calendar.add_months(days, number * _MONTHS[unit]) - days).cast(pl.Int128) * MICROSECONDS_A_DAY
    else:
        moved = number.cast(pl.Int128) * _MICROSECONDS[unit]
    total = (start.cast(pl.Int128) + moved).cast(pl.Int64, strict=False)
    given = start.is_not_null() & number.is_not_null()
    return total.cast(MOMENT), [fault(total.is_null() & given, "a moment out of range", term)]


@operation("timestampdiff")
def difference(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    unit = str(term.options[0])
    start, end = (part.value.cast(pl.Int64) for part in parts)
    if unit in _MONTHS:
        return staged(_months_between, start, end, dtype=pl.Int64()).truncdiv(_MONTHS[unit])
    apart = (end.cast(pl.Int128) - start.cast(pl.Int128)).truncdiv(pl.lit(_MICROSECONDS[unit], dtype=pl.Int128))
    value = apart.cast(pl.Int64, strict=False)
    return value, [fault(value.is_null() & apart.is_not_null(), "overflow", term)] if unit == "microsecond" else []


def _months_between(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Whole months from a to b: the last one counts only when its day and time of day have been reached."""
    day = {name: pl.col(f"{name} day") for name in "ab"}
    time = {name: pl.col(name) - day[name] * MICROSECONDS_A_DAY for name in "ab"}
    frame = frame.with_columns_seq(pl.col(name).floordiv(MICROSECONDS_A_DAY).alias(f"{name} day") for name in "ab")
    back = (day["b"] > day["a"]) & (time["b"] < time["a"])
    on = (day["b"] < day["a"]) & (time["b"] > time["a"])
    frame = frame.with_columns_seq(pl.when(back).then(day["b"] - 1).when(on).then(day["b"] + 1).otherwise(day["b"]).alias("b day"))
    packed = [_packed(day[name]).alias(name) for name in "ab"]
    return frame.select_seq(packed).with_columns_seq((pl.col("b") - pl.col("a")).truncdiv(32).alias("value"))


def _packed(days: pl.Expr) -> pl.Expr:
    """Months and days in one number, so that a difference of 32 is a whole month."""
    date = calendar.in_cycle(days).dt
    return (calendar.year(days) * 12 + date.month().cast(pl.Int64)) * 32 + date.day().cast(pl.Int64)
