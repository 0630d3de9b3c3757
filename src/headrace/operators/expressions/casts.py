"""Casts between numbers, text, booleans, dates and timestamps, by Spark's ANSI rules."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headrace.operators.expressions.dtypes import MOMENT, dtype
from headrace.operators.expressions.kernels import quotient
from headrace.operators.expressions.numbers import decimals, floats
from headrace.operators.expressions.parts import CompiledTerm, Made, fault, operation
from headrace.operators.expressions.text import readings
from headrace.operators.expressions.times import writing
from headrace.operators.expressions.times.calendar import MICROSECONDS_A_DAY
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, STRING
from headrace.plan.expressions.syntax.nodes import Interval, Kind
from headrace.plan.expressions.terms import Apply

_LIMITS = {kinds.TINYINT: 2**7, kinds.SMALLINT: 2**15, kinds.INT: 2**31, kinds.BIGINT: 2**63}
_OVERFLOW = "overflow"


@operation("cast")
def cast(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    source, target, value = parts[0].term.kind or kinds.NULL, term.kind or kinds.NULL, parts[0].value
    if source == STRING:
        return readings.read(term, value, target)
    if target == STRING:
        return _written(value, source)
    if target == BOOLEAN:
        return (decimals.unscaled(value) if kinds.decimal(source) else value) != 0
    if isinstance(target, pa.Decimal128Type):
        return _to_decimal(term, value, source, target)
    if isinstance(source, pa.Decimal128Type):
        return _from_decimal(term, value, source, target)
    if source == DATE or kinds.instant(source) or isinstance(source, Interval):
        return _from_moment(term, value, source, target)
    if kinds.instant(target):
        return _timestamp(value)
    return _between_numbers(term, value, source, target)


def _between_numbers(term: Apply, value: pl.Expr, source: Kind, target: Kind) -> pl.Expr | Made:
    if kinds.floating(target) or source == BOOLEAN:
        return value.cast(dtype(target))
    # Casts that are not strict return null for what does not fit, and cut fractions off.
    cut = value.cast(dtype(target), strict=False)
    if kinds.floating(source) and target == BIGINT:
        # The largest bigint is not a double: the next double above counts as it.
        cut = pl.when(value == 2.0**63).then(2**63 - 1).otherwise(cut)
    if kinds.integer(source) and _LIMITS[source] <= _LIMITS[target]:
        return cut
    return cut, [fault(cut.is_null() & value.is_not_null(), _OVERFLOW, term)]


@operation("saturated timestamp")
def saturated(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """A date as a timestamp; beyond the range it stays at the limit."""
    last = (2**63 - 1) // MICROSECONDS_A_DAY
    return (parts[0].value.cast(pl.Int64).clip(-last, last) * MICROSECONDS_A_DAY).cast(MOMENT)


def _to_decimal(term: Apply, value: pl.Expr, source: Kind, target: pa.Decimal128Type) -> pl.Expr | Made:
    if kinds.floating(source):
        made = floats.to_decimal(value, target)
        # NaN and infinity become null without a fault.
        return made, [fault(made.is_null() & value.is_finite(), _OVERFLOW, term)]
    if isinstance(source, pa.Decimal128Type):
        digits, held = decimals.unscaled(value), source
    else:
        digits, held = value.cast(pl.Int128), pa.decimal128(1, 0) if source == BOOLEAN else kinds.as_decimal(source)
    by = target.scale - held.scale
    room = target.precision - target.scale - (held.precision - held.scale)
    if by >= 0 and room >= 0:
        return decimals.scaled(decimals.rescaled(digits, by), target)
    if by < 0:
        made = decimals.shortened(digits, -by, target)
    else:
        limit = 10 ** max(0, target.precision - by)
        fits = (digits < decimals.number(limit)) & (digits > decimals.number(-limit))
        made = decimals.scaled(decimals.rescaled(pl.when(fits).then(digits), by), target)
    return made, [fault(made.is_null() & value.is_not_null(), _OVERFLOW, term)]


def _from_decimal(term: Apply, value: pl.Expr, source: pa.Decimal128Type, target: Kind) -> pl.Expr | Made:
    if kinds.floating(target):
        if source.precision <= 15 and target == DOUBLE:
            # Both numbers are exact, so the one division rounds as reading the text would.
            return quotient(decimals.unscaled(value).cast(pl.Int64).cast(pl.Float64), float(10**source.scale), pl.Float64())
        return value.cast(pl.String).cast(dtype(target), strict=False)
    whole = decimals.unscaled(value).truncdiv(decimals.number(10**source.scale))
    cut = whole.cast(dtype(target), strict=False)
    return cut, [fault(cut.is_null() & value.is_not_null(), _OVERFLOW, term)]


def _timestamp(seconds: pl.Expr) -> pl.Expr:
    """Whole seconds since 1970; beyond the range it stays at the limit."""
    last = (2**63 - 1) // 1_000_000
    whole = seconds.cast(pl.Int64)
    number = pl.when(whole > last).then(2**63 - 1).when(whole < -last).then(-(2**63)).otherwise(whole * 1_000_000)
    return number.cast(MOMENT)


def _from_moment(term: Apply, value: pl.Expr, source: Kind, target: Kind) -> pl.Expr | Made:
    if isinstance(source, Interval):
        return value
    number = value.cast(pl.Int64)
    if source == DATE:
        misses = number.abs() > (2**63 - 1) // MICROSECONDS_A_DAY
        return (number * MICROSECONDS_A_DAY).cast(dtype(target)), [fault(misses, _OVERFLOW, term)]
    if kinds.instant(target):
        return number.cast(dtype(target))
    if target == DATE:
        return number.floordiv(MICROSECONDS_A_DAY).cast(pl.Int32).cast(pl.Date)
    if target == DOUBLE:
        return quotient(number.cast(pl.Float64), 1e6, pl.Float64())
    return _between_numbers(term, number.floordiv(1_000_000), kinds.BIGINT, target)


def _written(value: pl.Expr, source: Kind) -> pl.Expr:
    if source == DATE:
        return writing.date_text(value)
    return writing.timestamp_text(value) if kinds.instant(source) else value.cast(pl.String)
