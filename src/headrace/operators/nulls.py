"""Nulls in a column. Without any, the answer needs no query of polars, which takes longer than most of the work of a small epoch."""

from __future__ import annotations

import numpy as np
import polars as pl


def nulls_of(column: pl.Series) -> np.ndarray:
    """Which values are null.

    >>> nulls_of(pl.Series([1, None])).tolist()
    [False, True]
    """
    if not column.null_count():
        return np.zeros(len(column), dtype=bool)
    return column.is_null().to_numpy()


def filled(column: pl.Series, value: bool | int) -> np.ndarray:
    """The values, with another in place of null.

    >>> filled(pl.Series([5, None]), 0).tolist()
    [5, 0]
    """
    return (column.fill_null(value) if column.null_count() else column).to_numpy()


def same_values(left: pl.Series, right: pl.Series) -> np.ndarray:
    """Whether values are equal; null equals null, and NaN equals NaN.

    >>> same_values(pl.Series([1, None, 2]), pl.Series([1, None, None])).tolist()
    [True, True, False]
    """
    if left.null_count() or right.null_count():
        return left.eq_missing(right).to_numpy()
    return left.eq(right).to_numpy()
