"""Variance and standard deviation: means and squared distances from them, merged as Chan, Golub and LeVeque do.

No square of a value is ever summed, so that large values with a small spread lose no digits. Merges add floats: the last digits may depend
on how records were batched.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.counted import revocable
from headrace.operators.aggregates.functions.lists import ROW, flattened
from headrace.operators.expressions.numbers.decimals import unscaled

_COUNT, _MEAN, _SPREAD = "count", "mean", "spread"


def variance(*, sample: bool, root: bool) -> Function:
    """The variance of a sample: divided by one less than the count, and null for a single value."""

    def finish(a: EvaluatedCall) -> pl.Expr:
        count, spread = pl.col(a.part(_COUNT)), pl.col(a.part(_SPREAD))
        value = spread / (count - 1 if sample else count)
        return pl.when(count > (1 if sample else 0)).then(value.sqrt() if root else value)

    return revocable(Function(_partial, _gathered, finish, condense=_merged))


def _partial(a: EvaluatedCall) -> Accumulators:
    values = a.filtered(_number(a))
    count = values.count().cast(pl.Int64)
    return {a.part(_COUNT): count, a.part(_MEAN): values.mean(), a.part(_SPREAD): values.var(ddof=0) * count}


def _gathered(a: EvaluatedCall) -> Accumulators:
    return {a.part(what): pl.col(a.part(what)) for what in (_COUNT, _MEAN, _SPREAD)}


def _merged(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    """The count, mean and spread of several groups together, each given as a list."""
    names = [a.part(what) for what in (_COUNT, _MEAN, _SPREAD)]
    if raw or frame.is_empty():
        return frame if raw else frame.with_columns_seq(pl.col(name).list.first() for name in names)
    flat = flattened(frame, names)
    count, mean, spread = (flat.get_column(name).fill_null(0).to_numpy() for name in names)
    rows = flat.get_column(ROW).to_numpy()
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    total = np.add.reduceat(count, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The first mean is near the others, and subtracting near values loses no digits.
        near = mean[starts]
        together = near + np.add.reduceat(count * (mean - near[rows]), starts) / total
        apart = np.add.reduceat(spread + np.where(count > 0, count * (mean - together[rows]) ** 2, 0.0), starts)
    found = {_COUNT: total, _MEAN: np.where(total > 0, together, 0.0), _SPREAD: np.where(total > 0, apart, 0.0)}
    return frame.with_columns_seq(pl.Series(a.part(what), values) for what, values in found.items())


def _number(a: EvaluatedCall) -> pl.Expr:
    value, kind = pl.col(a.inputs[0]), a.argument
    if isinstance(kind, pl.Decimal):
        return unscaled(value).cast(pl.Float64) / 10.0**kind.scale
    return value.cast(pl.Float64)
