"""Variance and standard deviation: means and squared distances from them, united as Chan, Golub and LeVeque do.

No square of a value is ever summed, so that large values with a small spread lose no digits. Unions add floats: the last
digits may depend on how records were batched.
"""

from __future__ import annotations

import polars as pl

from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.expressions.decimals import unscaled
from headrace.operators.function import Function


def variance(*, sample: bool, root: bool) -> Function:
    """Of a sample: divided by one less than the count, and null for a single value."""

    def finish(a: Aggregate) -> pl.Expr:
        count, spread = pl.col(a.part("count")), pl.col(a.part("spread"))
        value = spread / (count - 1 if sample else count)
        return pl.when(count > (1 if sample else 0)).then(value.sqrt() if root else value)

    return Function(_partial, _merge, finish)


def _partial(a: Aggregate) -> Accumulators:
    values = a.filtered(_number(a))
    return {
        a.part("count"): values.count().cast(pl.Int64),
        a.part("mean"): values.mean(),
        a.part("spread"): ((values - values.mean()) ** 2).sum(),
    }


def _merge(a: Aggregate) -> Accumulators:
    count, mean, spread = (pl.col(a.part(what)) for what in ("count", "mean", "spread"))
    # Distances are taken from one of the means, not from zero: numbers far from zero would lose digits in it.
    near = mean.drop_nulls().first()
    together = near + (count * (mean - near)).sum() / count.sum()
    return {
        a.part("count"): count.sum(),
        a.part("mean"): together,
        a.part("spread"): (spread + (count * (mean - together) ** 2).fill_null(0.0)).sum(),
    }


def _number(a: Aggregate) -> pl.Expr:
    value, kind = pl.col(a.inputs[0]), a.argument
    if isinstance(kind, pl.Decimal):
        return unscaled(value).cast(pl.Float64) / 10.0**kind.scale
    return value.cast(pl.Float64)
