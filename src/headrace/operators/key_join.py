"""Joins of frames by the columns of a key, where values that are no number are equal, as they are in every key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

_ALIKE = "_alike"


def key_join(
    left: pl.DataFrame, right: pl.DataFrame, on: Sequence[str], how: Literal["inner", "left"] = "inner", *, nulls_equal: bool = False
) -> pl.DataFrame:
    """Rows with equal keys, in the order of the left ones.

    >>> one, two = pl.DataFrame({"x": [float("nan")], "a": [1]}), pl.DataFrame({"x": [float("nan")], "b": [2]})
    >>> key_join(one, two, ["x"]).select("a", "b").rows()
    [(1, 2)]
    """
    if len(on) != 1 or not left.schema[on[0]].is_float():
        return left.join(right, on=list(on), how=how, nulls_equal=nulls_equal, maintain_order="left")
    # Polars merges two sorted columns of numbers, a single row is always sorted, and a merge finds no NaN. Two columns are hashed.
    alike = pl.lit(True).alias(_ALIKE)
    left, right = left.with_columns_seq(alike), right.with_columns_seq(alike)
    return left.join(right, on=[*on, _ALIKE], how=how, nulls_equal=nulls_equal, maintain_order="left").drop(_ALIKE)
