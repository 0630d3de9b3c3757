"""List columns flattened and regrouped, so that many groups are processed as one column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

ROW = "_row"


def flattened(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The elements of list columns of the same lengths, one in each row, with `_row`: the number of their list."""
    lengths = frame.get_column(columns[0]).list.len().to_numpy()
    rows = pl.Series(ROW, np.repeat(np.arange(len(frame), dtype=np.uint64), lengths))
    return pl.DataFrame([rows, *(elements(frame.get_column(name)) for name in columns)])


def elements(column: pl.Series) -> pl.Series:
    """The elements of all lists of a column, one after the other."""
    return column.explode(empty_as_null=False, keep_nulls=False)


def gathered(rows: np.ndarray, values: pl.Series, count: int) -> pl.Series:
    """`count` lists of elements that are in the order of their lists, whose numbers are `rows`.

    >>> gathered(np.array([0, 0, 2]), pl.Series("x", [7, 8, 9]), 3).to_list()
    [[7, 8], [], [9]]
    """
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    found = pl.from_arrow(pa.LargeListArray.from_arrays(pa.array(offsets), values.to_arrow()))
    assert isinstance(found, pl.Series)
    return found.cast(pl.List(values.dtype)).alias(values.name)


def regrouped(frame: pl.DataFrame, flat: pl.DataFrame) -> pl.DataFrame:
    """The frame with its list columns replaced by the columns of `flat`, which is in the order of `_row`."""
    rows = flat.get_column(ROW).to_numpy().astype(np.int64)
    return frame.with_columns_seq(gathered(rows, values, len(frame)) for values in flat.drop(ROW))
