"""Sums of floats that are exact while they add up, so that no order of records changes a digit of them.

A float is split at the point, and both halves are added up as integers of 128 bits. Zero and everything between 2**-38
(3.6e-12) and 2**90 (1.2e27) in size is exact that way, for 2**37 records; what is smaller or larger, and what is no number, adds up
as floats do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from headrace.operators.aggregate import Aggregate
from headrace.operators.dense import Groups
from headrace.operators.expressions.decimals import number

_LEAST, _MOST = 2.0**-38, 2.0**90
_SCALE = 2**90
# Three times as many bits lie behind the point, and so many numbers of them fit into a float's 53.
_BITS, _MANY = 30, 2**22


def parts(signed: bool) -> tuple[str, ...]:
    return ("whole", "fraction", "rest", *(("nans", "highest", "lowest") if signed else ()))


def addends(values: pl.Expr, signed: bool) -> Mapping[str, pl.Expr]:
    """What is added up. Over a changelog infinity and NaN are counted, because a float that took them in can't give them back."""
    exact = (values == 0.0) | ((values.abs() >= _LEAST) & (values.abs() < _MOST))
    plain = pl.when(exact).then(values)
    split = {"whole": plain.cast(pl.Int128), "fraction": ((plain - plain.truncate()) * float(_SCALE)).cast(pl.Int128)}
    rest = pl.when(~exact & values.is_finite() if signed else ~exact).then(values)
    if not signed:
        return split | {"rest": rest}
    special = {"nans": values.is_nan(), "highest": values == float("inf"), "lowest": values == float("-inf")}
    return split | {"rest": rest} | {name: found.cast(pl.Int64) for name, found in special.items()}


def dense(values: np.ndarray, chosen: np.ndarray | None, groups: Groups) -> Mapping[str, pl.Series] | None:
    """The same sums over numbered groups, by way of floats that are whole numbers of 30 bits: so many of these add up exactly.

    None where there are too many values, or one of them is too large or too small for it.
    """
    size = np.abs(values)
    if len(values) > _MANY or not (size < 2.0**_BITS).all() or ((size < _LEAST) & (size > 0)).any():
        return None
    sums, rest, place = [], values, 0
    while place == 0 or rest.any():
        digits = np.rint(rest)
        sums.append(pl.Series(groups.added_up(digits, chosen)).cast(pl.Int128))
        rest = (rest - digits) * 2.0**_BITS
        place += 1
    fraction = pl.Series([0]).new_from_index(0, len(groups)).cast(pl.Int128)
    weighted = [part.to_frame("part").select(pl.col("part") * number(_SCALE >> _BITS * (index + 1))) for index, part in enumerate(sums[1:])]
    for part in weighted:
        fraction = fraction + part.to_series()
    return {"whole": sums[0], "fraction": fraction, "rest": pl.Series(np.zeros(len(groups)))}


def total(aggregate: Aggregate) -> pl.Expr:
    """The sum, rounded once where all of it was exact and it is less than 2**89."""
    whole, fraction, rest = (pl.col(aggregate.part(part)) for part in ("whole", "fraction", "rest"))
    carry = fraction.truncdiv(number(_SCALE))
    found = _rounded(whole + carry, fraction - carry * number(_SCALE)) + rest
    if not aggregate.signed:
        return found
    nans, highest, lowest = (pl.col(aggregate.part(part)) > 0 for part in ("nans", "highest", "lowest"))
    return (
        pl.when(nans | (highest & lowest)).then(float("nan"))
        .when(highest).then(float("inf"))
        .when(lowest).then(float("-inf"))
        .otherwise(found)
    )  # fmt: skip


def _rounded(whole: pl.Expr, fraction: pl.Expr) -> pl.Expr:
    """Both halves in one integer, which becomes a float in one step."""
    small = (whole * number(_SCALE) + fraction).cast(pl.Float64) / float(_SCALE)
    # Of a large number 37 bits behind the point are enough, if the last one tells whether more were there.
    coarse = fraction.truncdiv(number(_SCALE >> 36))
    more = (fraction - coarse * number(_SCALE >> 36)).sign()
    large = ((whole * number(2**36) + coarse) * number(2) + more).cast(pl.Float64) / 2.0**37
    size = whole.abs()
    return pl.when(size < number(2**36)).then(small).when(size < number(2**89)).then(large).otherwise(whole.cast(pl.Float64))
