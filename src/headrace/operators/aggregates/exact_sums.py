"""Exact sums of floats, so that no order of records changes a digit of the result.

A float is split at the point, and both halves are summed as integers of 128 bits. Zero and everything between 2**-38 (3.6e-12) and 2**90
(1.2e27) in size is exact, for 2**37 records; smaller and larger values, infinity and NaN are summed as floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.numbered_groups import NumberedGroups
from headrace.operators.expressions.numbers.decimals import number

_LEAST, _MOST = 2.0**-38, 2.0**90
_SCALE = 2**90
# Three times as many bits are after the point; sums of this many numbers with that many bits fit into the 53 bits of a float.
_BITS, _MANY = 30, 2**22
# So few sums are quicker one by one than by a query.
_FEW = 256


def parts(signed: bool) -> tuple[str, ...]:
    return ("whole", "fraction", "rest", *(("nans", "highest", "lowest") if signed else ()))


def addends(values: pl.Expr, signed: bool) -> Mapping[str, pl.Expr]:
    """The addends. Over a changelog, infinity and NaN are counted, because a float sum cannot remove them again."""
    exact = (values == 0.0) | ((values.abs() >= _LEAST) & (values.abs() < _MOST))
    plain = pl.when(exact).then(values)
    split = {"whole": plain.cast(pl.Int128), "fraction": ((plain - plain.truncate()) * float(_SCALE)).cast(pl.Int128)}
    rest = pl.when(~exact & values.is_finite() if signed else ~exact).then(values)
    if not signed:
        return split | {"rest": rest}
    special = {"nans": values.is_nan(), "highest": values == float("inf"), "lowest": values == float("-inf")}
    return split | {"rest": rest} | {name: found.cast(pl.Int64) for name, found in special.items()}


def dense(values: np.ndarray, chosen: np.ndarray | None, groups: NumberedGroups) -> Mapping[str, pl.Series] | None:
    """The same sums over numbered groups, with floats that are whole numbers of 30 bits: a bounded number of these is summed exactly.

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
    weighted = [
        part.to_frame("part").select_seq(pl.col("part") * number(_SCALE >> _BITS * (index + 1))) for index, part in enumerate(sums[1:])
    ]
    for part in weighted:
        fraction = fraction + part.to_series()
    return {"whole": sums[0], "fraction": fraction, "rest": pl.Series(np.zeros(len(groups)))}


def total(aggregate: EvaluatedCall) -> pl.Expr:
    """The sum, rounded once where all of it was exact and it is less than 2**89."""
    whole, fraction, rest = (pl.col(aggregate.part(part)) for part in ("whole", "fraction", "rest"))
    found = pl.map_batches([whole, fraction], _summed, return_dtype=pl.Float64(), is_elementwise=True) + rest
    if not aggregate.signed:
        return found
    nans, highest, lowest = (pl.col(aggregate.part(part)) > 0 for part in ("nans", "highest", "lowest"))
    return (
        pl.when(nans | (highest & lowest)).then(float("nan"))
        .when(highest).then(float("inf"))
        .when(lowest).then(float("-inf"))
        .otherwise(found)
    )  # fmt: skip


def _summed(halves: Sequence[pl.Series]) -> pl.Series:
    """The sum of both halves of each number, rounded once."""
    if len(halves[0]) > _FEW:
        whole, fraction = pl.col("whole"), pl.col("fraction")
        carry = fraction.truncdiv(number(_SCALE))
        frame = pl.DataFrame([half.alias(name) for half, name in zip(halves, ("whole", "fraction"), strict=True)])
        return frame.select_seq(_rounded(whole + carry, fraction - carry * number(_SCALE)).alias(halves[0].name)).to_series()
    pairs = zip(*(half.to_list() for half in halves), strict=True)
    sums = [None if whole is None or fraction is None else _quotient(whole * _SCALE + fraction) for whole, fraction in pairs]
    return pl.Series(halves[0].name, sums, dtype=pl.Float64)


def _quotient(scaled: int) -> float:
    """A number that is this many times 2**-90; from 2**89 on without its fraction."""
    return scaled / _SCALE if abs(scaled) < _SCALE << 89 else float(abs(scaled) // _SCALE * (1 if scaled > 0 else -1))


def _rounded(whole: pl.Expr, fraction: pl.Expr) -> pl.Expr:
    """Both halves in one integer, which becomes a float in one step."""
    small = (whole * number(_SCALE) + fraction).cast(pl.Float64) / float(_SCALE)
    # For a large number, 37 bits after the point are enough, if the last one records whether there were more.
    coarse = fraction.truncdiv(number(_SCALE >> 36))
    more = (fraction - coarse * number(_SCALE >> 36)).sign()
    large = ((whole * number(2**36) + coarse) * number(2) + more).cast(pl.Float64) / 2.0**37
    size = whole.abs()
    return pl.when(size < number(2**36)).then(small).when(size < number(2**89)).then(large).otherwise(whole.cast(pl.Float64))
