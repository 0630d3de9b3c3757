"""Decimals as unscaled 128-bit integers: exact sums, products and quotients, rounded half up where Spark rounds."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.parts import CompiledTerm, Fault, fault
from headrace.plan.expressions.kinds import BIGINT, as_decimal
from headrace.plan.expressions.terms import Apply


def unscaled(value: pl.Expr) -> pl.Expr:
    """A decimal's digits as an integer: 1.25 is 125."""
    return value.reinterpret(dtype=pl.Int128)


def scaled(digits: pl.Expr, kind: pa.Decimal128Type) -> pl.Expr:
    """The decimal with these digits, which are known to fit."""
    return digits.reinterpret(dtype=dtype(kind))


def number(value: int) -> pl.Expr:
    return pl.lit(value, dtype=pl.Int128)


def fitted(digits: pl.Expr, kind: pa.Decimal128Type) -> tuple[pl.Expr, pl.Expr]:
    """(the decimal, null where the digits do not fit; where they do not fit)."""
    limit = 10**kind.precision
    misses = (digits >= number(limit)) | (digits <= number(-limit))
    return scaled(pl.when(~misses).then(digits), kind), misses


def rescaled(digits: pl.Expr, by: int) -> pl.Expr:
    """The digits at a scale that is larger by `by`, or 0."""
    return digits if by == 0 else digits * number(10**by)


def _operands(parts: tuple[CompiledTerm, ...]) -> tuple[pl.Expr, pl.Expr, int, int]:
    left, right = (as_decimal(part.term.kind or BIGINT) for part in parts)
    one, two = (unscaled(part.value) for part in parts)
    return one, two, left.scale, right.scale


def arithmetic(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """+, - and * where the result has at most 38 digits, so that nothing overflows or is rounded."""
    one, two, scale_one, scale_two = _operands(parts)
    kind = as_decimal(term.kind or BIGINT)
    if term.operation == "*":
        return scaled(one * two, kind)
    one, two = rescaled(one, kind.scale - scale_one), rescaled(two, kind.scale - scale_two)
    return scaled(one + two if term.operation == "+" else one - two, kind)


def division(term: Apply, parts: tuple[CompiledTerm, ...]) -> tuple[pl.Expr, list[Fault]]:
    """/, %, pmod and div; null where the divisor is zero, which the caller reports, and where the result does not fit."""
    one, two, scale_one, scale_two = _operands(parts)
    kind = term.kind or BIGINT

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        frame = frame.with_columns_seq(pl.when(pl.col("b") != 0).then(pl.col("b")).alias("b"))
        if term.operation == "/":
            by = as_decimal(kind).scale - scale_one + scale_two
            return fitting(_quotient(frame.with_columns_seq(rescaled(pl.col("a"), by))), as_decimal(kind))
        return _remainder(frame, term, scale_one, scale_two)

    value = staged(kernel, one, two, dtype=dtype(kind))
    given = pl.all_horizontal([part.value.is_not_null() for part in parts])
    return value, [fault(value.is_null() & given & (parts[1].value != 0), "overflow", term)]


def _remainder(frame: pl.LazyFrame, term: Apply, scale_one: int, scale_two: int) -> pl.LazyFrame:
    scale = max(scale_one, scale_two)
    a, b = pl.col("a"), pl.col("b")
    frame = frame.with_columns_seq(rescaled(a, scale - scale_one), rescaled(b, scale - scale_two))
    frame = frame.with_columns_seq(a.truncdiv(b).alias("quotient"))
    if term.operation == "div":
        # Spark keeps the low 64 bits of a quotient that is larger.
        return frame.with_columns_seq(pl.col("quotient").cast(pl.Int64, wrap_numerical=True).alias("value"))
    frame = frame.with_columns_seq((a - pl.col("quotient") * b).alias("value"))
    if term.operation == "pmod":
        lifted = pl.col("value") + b
        again = lifted - lifted.truncdiv(b) * b
        frame = frame.with_columns_seq(pl.when(pl.col("value") < 0).then(again).otherwise(pl.col("value")).alias("value"))
    return fitting(frame, as_decimal(term.kind or BIGINT))


def _quotient(frame: pl.LazyFrame) -> pl.LazyFrame:
    """`value`: a / b, rounded half away from zero."""
    a, b, quotient, rest = (pl.col(name) for name in ("a", "b", "quotient", "rest"))
    frame = frame.with_columns_seq(a.truncdiv(b).alias("quotient"))
    frame = frame.with_columns_seq((a - quotient * b).abs().alias("rest"))
    sign = pl.when((a < 0) != (b < 0)).then(number(-1)).otherwise(number(1))
    # rest >= b - rest, and not 2 * rest >= b, which could overflow.
    step = pl.when(rest >= b.abs() - rest).then(sign).otherwise(number(0))
    return frame.with_columns_seq((quotient + step).alias("value"))


def fitting(frame: pl.LazyFrame, kind: pa.Decimal128Type) -> pl.LazyFrame:
    """`value` as the decimal with these digits, null where they do not fit."""
    return frame.with_columns_seq(fitted(pl.col("value"), kind)[0].alias("value"))


def flipped(term: Apply, part: CompiledTerm) -> pl.Expr:
    """Minus a decimal, or its absolute value: both always fit."""
    digits = unscaled(part.value)
    return scaled(digits.abs() if term.operation == "abs" else number(0) - digits, as_decimal(term.kind or BIGINT))


def shortened(digits: pl.Expr, drop: int, kind: pa.Decimal128Type, to_even: bool = False) -> pl.Expr:
    """The decimal with `drop` fewer digits after the point, rounded half up or to even; null where it does not fit."""

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        return fitting(without_digits(frame, drop, to_even), kind)

    return staged(kernel, digits, dtype=dtype(kind))


def without_digits(frame: pl.LazyFrame, drop: int, to_even: bool) -> pl.LazyFrame:
    """`value`: a without its last `drop` digits."""
    if drop > 38:
        return frame.with_columns_seq((pl.col("a") * number(0)).alias("value"))
    if not to_even:
        return _quotient(frame.with_columns_seq(number(10**drop).alias("b")))
    a, quotient, rest = (pl.col(name) for name in ("a", "quotient", "rest"))
    frame = frame.with_columns_seq(a.truncdiv(number(10**drop)).alias("quotient"))
    frame = frame.with_columns_seq((a - quotient * number(10**drop)).abs().alias("rest"))
    odd = (quotient - quotient.truncdiv(number(2)) * number(2)) != 0
    half = number(10**drop // 2)
    sign = pl.when(a < 0).then(number(-1)).otherwise(number(1))
    step = pl.when((rest > half) | ((rest == half) & odd)).then(sign).otherwise(number(0))
    return frame.with_columns_seq((quotient + step).alias("value"))
