"""Frames of a few rows. There, how polars is asked takes longer than what it does: these are its quick ways.

For the same reason operators ask for several columns with `select_seq` and `with_columns_seq`, which do not go to another thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from polars._plr import PyDataFrame, PySeries

# With more rows than this, a filter is quicker than their numbers.
_FEW = 10_000
# An odd number with bits all over: (a, b) and (b, a) have different hashes.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def rows_at(frame: pl.DataFrame, numbers: np.ndarray) -> pl.DataFrame:
    """The rows of these numbers, in their order.

    >>> rows_at(pl.DataFrame({"k": ["a", "b", "c"]}), np.array([2, 0])).get_column("k").to_list()
    ['c', 'a']
    """
    if len(numbers) > _FEW:
        return frame[pl.Series(numbers.astype(np.uint32))]
    indices = PySeries.new_u32("", numbers.astype(np.uint32), True)
    # A frame hands this over to a thread of its own, which takes as long to wake up as some columns take here.
    columns = [column.gather_with_series(indices) for column in frame._df.get_columns()]  # noqa: SLF001
    return pl.DataFrame._from_pydf(PyDataFrame(columns))  # noqa: SLF001


def columns_of(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Some columns, in this order.

    >>> columns_of(pl.DataFrame({"k": ["a"], "n": [1]}), ["n"]).rows()
    [(1,)]
    """
    # `frame[names]` tries first what else the names may be.
    return pl.DataFrame._from_pydf(frame._df.select(list(names)))  # noqa: SLF001


def without(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Rows without a column.

    >>> without(pl.DataFrame({"k": ["a"], "n": [1]}), "n").rows()
    [('a',)]
    """
    return columns_of(frame, [column for column in frame.columns if column != name])


def row_hashes(frame: pl.DataFrame, columns: Sequence[str], seed: int) -> np.ndarray:
    """A number for each row, the same for equal values in some columns; null equals null."""
    kinds = frame.schema
    if any(kinds[name].is_nested() for name in columns):
        return columns_of(frame, columns).hash_rows(seed=seed).to_numpy()
    first, *others = (column.to_numpy() for column in frame.select_seq(pl.col(name).hash(seed) for name in columns))
    total: np.ndarray = first
    for hashes in others:
        total = total * _SPREAD ^ hashes
    return total


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
