"""Doubles rounded by their decimal digits, as Java does from their text, mostly without writing that text.

Java rounds the shortest decimal that reads back as the same double. Up to 15 digits, that decimal is known without writing it: a double is
a tie exactly when it is the double nearest to the tie, and below or above it otherwise.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.numbers import decimals
from headrace.operators.expressions.text import readings

Numbers: TypeAlias = npt.NDArray[np.float64]

# Below this size, a tie with one more digit than requested has at most 15 digits.
_EASY = 1e14
_WHOLE = float(2**52)
# Harder numbers are not below 0.1 when at most 15 places are requested, so their text has at most 17 places.
_EXACT = pa.decimal128(38, 20)


def rounded(value: pl.Expr, places: int, to_even: bool) -> pl.Expr:
    """The double nearest to the decimal rounded to `places`, halves away from zero or to the even neighbor."""

    def run(values: pl.Series) -> pl.Series:
        numbers = values.to_numpy()
        size = np.abs(numbers)
        easy = _easy(size, places)
        # Infinity, NaN, and numbers so large that all are whole, stay the same; zero loses its sign.
        made = np.where(easy, np.copysign(_units(size, places, to_even) / 10.0**places, numbers) + 0.0, numbers)
        hard = ~easy & (size < _WHOLE)
        if hard.any():
            made[hard] = _decimal(values.to_frame("x").filter(pl.Series(hard)), places, to_even).cast(pl.String).cast(pl.Float64).to_numpy()
        return _with_nulls(pl.Series(values.name, made), values)

    return value.map_batches(run, return_dtype=pl.Float64, is_elementwise=True)


def to_decimal(value: pl.Expr, kind: pa.Decimal128Type) -> pl.Expr:
    """The decimal rounded half up, null where it does not fit, and for NaN and infinity."""

    def run(values: pl.Series) -> pl.Series:
        numbers = values.to_numpy()
        size = np.abs(numbers)
        fits = size < 10.0 ** (kind.precision - kind.scale)
        easy = fits & _easy(size, kind.scale)
        units = np.where(easy, np.copysign(_units(size, kind.scale, to_even=False), numbers), 0.0)
        digits = pl.Series(units).cast(pl.Int64).cast(pl.Int128)
        hard = fits & ~easy
        if hard.any():
            exact = _decimal(values.to_frame("x").filter(pl.Series(hard)), kind.scale, to_even=False)
            digits = digits.scatter(np.flatnonzero(hard), exact.reinterpret(dtype=pl.Int128))
        made = pl.select(decimals.fitted(pl.when(pl.Series(fits)).then(digits), kind)[0]).to_series()
        return _with_nulls(made.alias(values.name), values)

    return value.map_batches(run, return_dtype=dtype(kind), is_elementwise=True)


def _easy(size: Numbers, places: int) -> npt.NDArray[np.bool_]:
    with np.errstate(over="ignore"):
        return size * 10.0**places < _EASY


def _units(size: Numbers, places: int, to_even: bool) -> Numbers:
    """The number of units of the last place, for sizes that are easy; the others may be anything."""
    unit = 10.0**places
    with np.errstate(all="ignore"):
        below = np.floor(size * unit)
        tie = (2.0 * below + 1.0) / (2.0 * unit)
        up = size >= tie
        if to_even:
            up &= (size != tie) | (below % 2.0 != 0.0)
        return below + up


def _decimal(frame: pl.DataFrame, places: int, to_even: bool) -> pl.Series:
    """Column x as decimals with this many places, from the text of its numbers."""
    exact = readings.decimal(pl.col("x").cast(pl.String), _EXACT)
    made = decimals.shortened(decimals.unscaled(exact), _EXACT.scale - places, pa.decimal128(38, places), to_even)
    return frame.lazy().select_seq(made).collect(engine="in-memory").to_series()


def _with_nulls(made: pl.Series, source: pl.Series) -> pl.Series:
    if not source.null_count():
        return made
    return pl.select(pl.when(source.is_not_null()).then(made)).to_series().alias(source.name)
