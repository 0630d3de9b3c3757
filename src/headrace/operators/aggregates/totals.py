"""Sums and averages that do not depend on the order of records, and never lose a digit or wrap around.

Whole numbers are summed in 128 bits. Decimals of more than 28 digits are summed in two parts, so that even very many of them fit, and so
are floats (`exact_sums.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from headrace.operators.aggregates import exact_sums as floats
from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.numbered_groups import NumberedGroups
from headrace.operators.changes import OP
from headrace.operators.expressions.kernels import quotient
from headrace.operators.expressions.numbers.decimals import number, unscaled

# Totals of this many digits fit into 128 bits, however many records there are.
_ROOMY = 28
_HALF = 10**19


def partial(aggregate: EvaluatedCall) -> Accumulators:
    """The total of a batch, and the number of its values."""
    totals = {aggregate.part(part): _of_batch(aggregate, values) for part, values in _addends(aggregate).items()}
    return totals | {aggregate.part("count"): counted(aggregate)}


def dense(aggregate: EvaluatedCall, records: pl.DataFrame, groups: NumberedGroups) -> Mapping[str, pl.Series] | None:
    """`partial` over numbered groups: for numbers that can be summed in 64 bits, and for most floats."""
    if aggregate.signed or isinstance(aggregate.argument, pl.Decimal):
        return None
    chosen = aggregate.chosen(records)
    values = records.get_column(aggregate.inputs[0])
    values = values if chosen is None else values.filter(pl.Series(chosen))
    if aggregate.argument.is_float():
        sums = floats.dense(values.cast(pl.Float64).to_numpy(), chosen, groups)
    else:
        sums = _whole(values.cast(pl.Int64), chosen, groups)
    if sums is None:
        return None
    return {aggregate.part(part): column for part, column in sums.items()} | {
        aggregate.part("count"): pl.Series(groups.counted(chosen), dtype=pl.Int64)
    }


def merge(aggregate: EvaluatedCall) -> Accumulators:
    return {aggregate.part(part): pl.col(aggregate.part(part)).sum() for part in (*_parts(aggregate), "count")}


def counted(aggregate: EvaluatedCall) -> pl.Expr:
    """The number of records with a value; a retraction subtracts one."""
    if not aggregate.signed:
        return aggregate.column(0).count().cast(pl.Int64)
    signs = pl.col(OP).cast(pl.Int64)
    return aggregate.filtered(signs * pl.col(aggregate.inputs[0]).is_not_null() if aggregate.inputs else signs).sum()


def sum_of(aggregate: EvaluatedCall) -> pl.Expr:
    """The sum; null where no record had a value, and where it does not fit its type."""
    if aggregate.argument.is_float():
        return _present(aggregate, floats.total(aggregate))
    if isinstance(aggregate.kind, pl.Decimal):
        return _present(aggregate, _fitted(_total(aggregate), aggregate.kind).reinterpret(dtype=aggregate.kind))
    return _present(aggregate, pl.col(aggregate.part("sum")).cast(aggregate.kind, strict=False))


def average_of(aggregate: EvaluatedCall) -> pl.Expr:
    """The sum divided by the count; null where no record had a value, and where it does not fit its type."""
    count = pl.col(aggregate.part("count"))
    if isinstance(aggregate.kind, pl.Decimal):
        return _present(aggregate, _decimal_average(aggregate, aggregate.kind).reinterpret(dtype=aggregate.kind))
    total = floats.total(aggregate) if aggregate.argument.is_float() else pl.col(aggregate.part("sum")).cast(pl.Float64)
    return _present(aggregate, quotient(total, count.cast(pl.Float64), pl.Float64()))


def overflow(aggregate: EvaluatedCall) -> pl.Expr | None:
    """The error where there were values but no result."""
    if aggregate.argument.is_float() or (aggregate.function == "avg" and not isinstance(aggregate.kind, pl.Decimal)):
        return None
    value = sum_of(aggregate) if aggregate.function == "sum" else average_of(aggregate)
    lost = (pl.col(aggregate.part("count")) > 0) & value.is_null()
    return pl.when(lost).then(pl.lit(f"overflow in {aggregate.text}"))


def _addends(aggregate: EvaluatedCall) -> Mapping[str, pl.Expr]:
    """The addends, in the form in which they can be summed."""
    kind, values = aggregate.argument, pl.col(aggregate.inputs[0])
    if kind.is_float():
        return floats.addends(values.cast(pl.Float64), aggregate.signed)
    if isinstance(kind, pl.Decimal):
        return _limbs(unscaled(values), kind)
    # Types smaller than 64 bits cannot wrap around in a batch.
    return {"sum": values.cast(pl.Int128 if kind == pl.Int64 else pl.Int64)}


def _whole(values: pl.Series, chosen: np.ndarray | None, groups: NumberedGroups) -> Mapping[str, pl.Series] | None:
    low, high = values.min(), values.max()
    largest = max(abs(int(low)), abs(int(high))) if isinstance(low, int) and isinstance(high, int) else 0
    if largest * len(values) >= 2**63:
        return None
    return {"sum": pl.Series(groups.whole_sums(values.to_numpy(), chosen)).cast(pl.Int128)}


def _of_batch(aggregate: EvaluatedCall, values: pl.Expr) -> pl.Expr:
    total = aggregate.filtered(values * pl.col(OP) if aggregate.signed else values).sum()
    # Types smaller than 128 bits were summed in 64, which is quicker.
    return total if aggregate.argument.is_float() else total.cast(pl.Int128)


def _present(aggregate: EvaluatedCall, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.col(aggregate.part("count")) > 0).then(value)


def _parts(aggregate: EvaluatedCall) -> tuple[str, ...]:
    if aggregate.argument.is_float():
        return floats.parts(aggregate.signed)
    return ("high", "low") if _split(aggregate.argument) else ("sum",)


def _split(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.Decimal) and (kind.precision or 38) > _ROOMY


def _limbs(digits: pl.Expr, kind: pl.DataType) -> Mapping[str, pl.Expr]:
    if not _split(kind):
        return {"sum": digits}
    high = digits.truncdiv(number(_HALF))
    return {"high": high, "low": digits - high * number(_HALF)}


def _total(aggregate: EvaluatedCall) -> pl.Expr:
    """The digits of a decimal's total; null where they need more than 128 bits."""
    if not _split(aggregate.argument):
        return pl.col(aggregate.part("sum"))
    high, low = pl.col(aggregate.part("high")), pl.col(aggregate.part("low"))
    carry = low.truncdiv(number(_HALF))
    high, low = high + carry, low - carry * number(_HALF)
    return pl.when(high.abs() <= number(_HALF)).then(high * number(_HALF) + low)


def _fitted(digits: pl.Expr, kind: pl.Decimal) -> pl.Expr:
    limit = number(10 ** (kind.precision or 38))
    return pl.when(digits.abs() < limit).then(digits)


def _decimal_average(aggregate: EvaluatedCall, kind: pl.Decimal) -> pl.Expr:
    """The digits of the average, rounded half away from zero; null where the sum or the average does not fit."""
    given = aggregate.argument
    assert isinstance(given, pl.Decimal)
    summed = pl.Decimal(min(38, (given.precision or 38) + 10), given.scale)
    total, count = _fitted(_total(aggregate), summed), pl.col(aggregate.part("count")).cast(pl.Int128)
    lift = number(10 ** (kind.scale - given.scale))
    whole = total.truncdiv(count)
    rest = (total - whole * count) * lift
    step = rest.truncdiv(count)
    left = (rest - step * count).abs()
    sign = pl.when(total < 0).then(number(-1)).otherwise(number(1))
    rounded = step + pl.when(left >= count - left).then(sign).otherwise(number(0))
    room = number(10 ** ((kind.precision or 38) - (kind.scale - given.scale)))
    return pl.when(whole.abs() < room).then(_fitted(whole * lift + rounded, kind))
