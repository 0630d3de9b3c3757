"""Frames of a few rows. There, how polars is asked takes longer than what it does: these are its quick ways.

For the same reason operators ask for several columns with `select_seq` and `with_columns_seq`, which do not go to another thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

# With more rows than this, a filter is quicker than their numbers.
_FEW = 10_000


def rows_at(frame: pl.DataFrame, numbers: np.ndarray) -> pl.DataFrame:
    """The rows of these numbers, in their order.

    >>> rows_at(pl.DataFrame({"k": ["a", "b", "c"]}), np.array([2, 0])).get_column("k").to_list()
    ['c', 'a']
    """
    return frame[pl.Series(numbers.astype(np.uint32))]


def rows_where(frame: pl.DataFrame, chosen: np.ndarray) -> pl.DataFrame:
    """The rows for which it is true.

    >>> rows_where(pl.DataFrame({"k": ["a", "b", "c"]}), np.array([True, False, True])).get_column("k").to_list()
    ['a', 'c']
    """
    if chosen.all():
        return frame
    return frame.filter(pl.Series(chosen)) if frame.height > _FEW else rows_at(frame, np.flatnonzero(chosen))


def with_constant(frame: pl.DataFrame, name: str, value: Any, kind: type[pl.DataType] | pl.DataType) -> pl.DataFrame:
    """Rows with a column that has the same value in each of them.

    >>> with_constant(pl.DataFrame({"k": ["a", "b"]}), "n", 1, pl.Int8).rows()
    [('a', 1), ('b', 1)]
    """
    column = pl.Series(name, [value], kind).new_from_index(0, frame.height)
    return frame.with_columns_seq(column) if name in frame.columns else frame.hstack([column])
