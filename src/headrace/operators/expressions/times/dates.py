"""Functions on dates and timestamps; the session's time zone is UTC."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from headrace.operators.expressions.dtypes import MOMENT, dtype
from headrace.operators.expressions.parts import CompiledTerm, Fault, Made, fault, operation
from headrace.operators.expressions.times import calendar
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import DATE
from headrace.plan.expressions.terms import Apply

_FIELDS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "month": lambda day: day.dt.month(),
    "day": lambda day: day.dt.day(),
    "dayofyear": lambda day: day.dt.ordinal_day(),
    "quarter": lambda day: day.dt.quarter(),
    "weekofyear": lambda day: day.dt.week(),
    "dayofweek": lambda day: day.dt.weekday().cast(pl.Int32) % 7 + 1,
    "weekday": lambda day: day.dt.weekday().cast(pl.Int32) - 1,
}
_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": MICROSECONDS_A_DAY,
}  # fmt: skip
_PER_SECOND = {"seconds": 1, "millis": 1_000, "micros": 1_000_000}
OUT_OF_RANGE = "a moment out of range"


@operation("year")
def year(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return calendar.year(parts[0].value.cast(pl.Int64)).cast(pl.Int32)


@operation(*_FIELDS)
def field(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return _FIELDS[term.operation](calendar.in_cycle(parts[0].value.cast(pl.Int64))).cast(pl.Int32)


@operation("hour", "minute", "second")
def clock(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    unit = _MICROSECONDS[term.operation]
    whole = parts[0].value.cast(pl.Int64).floordiv(unit)
    return (whole - whole.floordiv(24 if term.operation == "hour" else 60) * (24 if term.operation == "hour" else 60)).cast(pl.Int32)


@operation("unix_date")
def unix_date(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.cast(pl.Int32)


@operation("date_from_unix_date")
def from_days(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.cast(pl.Date)


@operation("unix_seconds", "unix_millis", "unix_micros")
def since_1970(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    step = 1_000_000 // _PER_SECOND[term.operation.removeprefix("unix_")]
    return parts[0].value.cast(pl.Int64).floordiv(step)


@operation("unix_timestamp")
def unix_timestamp(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """Truncated toward 1970, unlike unix_seconds."""
    return parts[0].value.cast(pl.Int64).truncdiv(1_000_000)


@operation("timestamp_seconds", "timestamp_millis", "timestamp_micros")
def from_number(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    step = 1_000_000 // _PER_SECOND[term.operation.removeprefix("timestamp_")]
    number = parts[0].value
    misses = (number > (2**63 - 1) // step) | (number < -(2**63 // step))
    return _timestamp(number * step), [fault(misses, OUT_OF_RANGE, term)] if step > 1 else []


def _timestamp(number: pl.Expr) -> pl.Expr:
    return number.cast(MOMENT)


def _as_date(days: pl.Expr, term: Apply) -> Made:
    """A date from days as Int64, with a fault where they do not fit."""
    value = days.cast(pl.Int32, strict=False)
    return value.cast(pl.Date), [fault(value.is_null() & days.is_not_null(), OUT_OF_RANGE, term)]


@operation("date_add", "date_sub")
def moved_by_days(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    start, days = (part.value.cast(pl.Int64) for part in parts)
    return _wrapped(start + days if term.operation == "date_add" else start - days)


@operation("date + days", "date - days")
def moved_by_interval_days(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    start = parts[0].value.cast(pl.Int64)
    days = parts[1].value.cast(pl.Int64).truncdiv(MICROSECONDS_A_DAY)
    return _wrapped(start + days if term.operation == "date + days" else start - days)


def _wrapped(days: pl.Expr) -> pl.Expr:
    """A date from days as Int64; beyond the range the number wraps around, as Spark's does."""
    return days.cast(pl.Int32, wrap_numerical=True).cast(pl.Date)


@operation("moment + interval", "moment - interval")
def moved_by_interval(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    start, length = (part.value.cast(pl.Int64) for part in parts)
    if term.operation == "moment + interval":
        total = start + length
        flag = (start ^ total) & (length ^ total) < 0
    else:
        total = start - length
        flag = (start ^ length) & (start ^ total) < 0
    return total.cast(dtype(term.kind or kinds.NULL)), [fault(flag, OUT_OF_RANGE, term)]


@operation("moment + months", "moment - months")
def moved_by_months(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    months = parts[1].value.cast(pl.Int64) * (1 if term.operation == "moment + months" else -1)
    start = parts[0].value
    if term.kind == DATE:
        return _as_date(calendar.add_months(start.cast(pl.Int64), months), term)
    days = calendar.day_number(start)
    moved = calendar.add_months(days, months) - days
    total = start.cast(pl.Int64) + moved * MICROSECONDS_A_DAY
    flag = (moved >= 0) != (total >= start.cast(pl.Int64))
    return total.cast(dtype(term.kind or kinds.NULL)), [fault(flag, OUT_OF_RANGE, term)]


@operation("add_months")
def add_months(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    return _as_date(calendar.add_months(*(part.value.cast(pl.Int64) for part in parts)), term)


@operation("moment - moment")
def difference(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    left, right = (part.value.cast(pl.Int64) for part in parts)
    if parts[0].term.kind == DATE:
        days = left - right
        misses = days.abs() > (2**63 - 1) // MICROSECONDS_A_DAY
        return (days * MICROSECONDS_A_DAY).cast(pl.Duration("us")), [fault(misses, OUT_OF_RANGE, term)]
    value = left - right
    return value.cast(pl.Duration("us")), [fault((left ^ right) & (left ^ value) < 0, OUT_OF_RANGE, term)]


@operation("datediff")
def days_between(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    left, right = (part.value.cast(pl.Int32) for part in parts)
    return left - right


@operation("last_day")
def last_day(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    days = parts[0].value.cast(pl.Int64)
    return _wrapped(calendar.moved_in_cycle(days, calendar.in_cycle(days).dt.month_end()))


@operation("trunc")
def truncate_date(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    unit = str(term.options[0])
    first = _first_day(parts[0].value.cast(pl.Int64), unit)
    return _as_date(first, term) if unit == "quarter" else _wrapped(first)


@operation("date_trunc")
def truncate_time(term: Apply, parts: tuple[CompiledTerm, ...]) -> Made:
    unit = str(term.options[0])
    number = parts[0].value.cast(pl.Int64)
    if unit in _MICROSECONDS:
        start = number.floordiv(_MICROSECONDS[unit]) * _MICROSECONDS[unit]
    else:
        start = _first_day(number.floordiv(MICROSECONDS_A_DAY), unit) * MICROSECONDS_A_DAY
    faults: list[Fault] = [] if unit == "microsecond" else [fault(start > number, OUT_OF_RANGE, term)]
    return _timestamp(start), faults


def _first_day(days: pl.Expr, unit: str) -> pl.Expr:
    day = calendar.in_cycle(days)
    if unit == "week":
        # In 32 bits, as Spark counts: the Monday after the day a week earlier.
        before = days.cast(pl.Int32) - pl.lit(7, dtype=pl.Int32)
        return (before + 1 + (3 - before) % 7).cast(pl.Int64)
    if unit == "month":
        return days - (day.dt.day().cast(pl.Int64) - 1)
    if unit == "year":
        return days - (day.dt.ordinal_day().cast(pl.Int64) - 1)
    return calendar.moved_in_cycle(days, day.dt.truncate("1q"))
