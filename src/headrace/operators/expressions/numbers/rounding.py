"""round, bround, floor and ceil."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.kernels import staged
from headrace.operators.expressions.numbers import decimals, floats
from headrace.operators.expressions.parts import CompiledTerm, Made, fault, operation
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT, as_decimal
from headrace.plan.expressions.terms import Apply


@operation("round", "bround")
def rounded(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    """`bround` rounds a half to the even neighbor."""
    after, source, value = int(str(term.options[0])), parts[0].term.kind, parts[0].value
    if kinds.floating(source or kinds.NULL):
        return floats.rounded(value, after, term.operation == "bround")
    kind, to_even = term.kind or BIGINT, term.operation == "bround"
    scale = source.scale if isinstance(source, pa.Decimal128Type) else 0
    if scale <= after:
        return decimals.scaled(decimals.unscaled(value), as_decimal(kind))

    def kernel(frame: pl.LazyFrame) -> pl.LazyFrame:
        frame = decimals.without_digits(frame, scale - after, to_even).with_columns_seq(
            decimals.rescaled(pl.col("value"), min(max(0, -after), 38))
        )
        if isinstance(kind, pa.Decimal128Type):
            return decimals.fitting(frame, kind)
        return frame.with_columns_seq(pl.col("value").cast(dtype(kind), strict=False))

    digits = decimals.unscaled(value) if isinstance(source, pa.Decimal128Type) else value.cast(pl.Int128)
    made = staged(kernel, digits, dtype=dtype(kind))
    return made, [fault(made.is_null() & value.is_not_null(), "overflow", term)]


@operation("floor", "ceil")
def to_whole(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    source, value = parts[0].term.kind, parts[0].value
    if isinstance(source, pa.Decimal128Type):
        digits, step = decimals.unscaled(value), decimals.number(10**source.scale)
        zero = decimals.number(0)
        whole = digits.floordiv(step) if term.operation == "floor" else zero - (zero - digits).floordiv(step)
        return decimals.scaled(whole, as_decimal(term.kind or BIGINT))
    whole = value.floor() if term.operation == "floor" else value.ceil()
    made = whole.fill_nan(0.0).cast(pl.Int64, strict=False)
    return made, [fault(made.is_null() & value.is_not_null(), "overflow", term)]
