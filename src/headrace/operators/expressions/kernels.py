"""Kernels: operations over whole columns in several stages, whose one-line form would grow too large.

A polars expression is a tree: a part used ten times is ten parts until the optimizer has found them equal, so operations that use their
arguments often are computed stage by stage instead. Each runs once for each batch, never once for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from headrace.operators.nulls import nulls_of

Kernel = Callable[[pl.LazyFrame], pl.LazyFrame]


def staged(kernel: Kernel, *inputs: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """`kernel` over a frame with the inputs as columns `a`, `b`, ...; its column `value` is the result, row by row."""

    def run(series: Sequence[pl.Series]) -> pl.Series:
        return _run(kernel, series, dtype)

    return pl.map_batches(list(inputs), run, return_dtype=dtype, is_elementwise=True)


def _run(kernel: Kernel, series: Sequence[pl.Series], dtype: pl.DataType) -> pl.Series:
    height = min(len(one) for one in series) if any(len(one) == 0 for one in series) else max(len(one) for one in series)
    # A constant arrives as a single value.
    columns = [one if len(one) == height else one.new_from_index(0, height) for one in series]
    frame = pl.DataFrame([one.alias(name) for one, name in zip(columns, "abcdefgh", strict=False)])
    value = kernel(frame.lazy()).select_seq(pl.col("value").cast(dtype)).collect(engine="in-memory").to_series()
    return value.alias(series[0].name)


def quotient(left: pl.Expr, right: pl.Expr | float, dtype: pl.DataType) -> pl.Expr:
    """left / right of floating numbers, rounded once as the processor rounds.

    polars multiplies by the reciprocal where the divisor is a constant, which differs in the last digit.
    """
    return over_numbers(np.divide, left, right, dtype=dtype)


def remainder(left: pl.Expr, right: pl.Expr | float, dtype: pl.DataType) -> pl.Expr:
    """The remainder of a division, with the sign of the dividend; exact, where polars computes it from a rounded quotient."""
    return over_numbers(np.fmod, left, right, dtype=dtype)


def over_numbers(function: Callable[..., npt.NDArray[np.floating]], *inputs: pl.Expr | float, dtype: pl.DataType) -> pl.Expr:
    """A numpy function over columns of floating numbers; null where one of them is."""

    def run(series: Sequence[pl.Series]) -> pl.Series:
        with np.errstate(all="ignore"):
            made = pl.Series(series[0].name, function(*(one.to_numpy() for one in series)), dtype=dtype)
        if not any(one.null_count() for one in series):
            return made
        # A constant arrives as a single value.
        missing = np.zeros(len(made), dtype=bool)
        for one in series:
            missing |= nulls_of(one)
        return made.set(pl.Series(missing), None)

    columns = [one if isinstance(one, pl.Expr) else pl.lit(one, dtype=dtype) for one in inputs]
    return pl.map_batches(columns, run, return_dtype=dtype, is_elementwise=True)
