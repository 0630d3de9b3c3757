"""The order of arrival of an epoch's records, independent of the order in which tasks deliver them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.columns import OFFSET, PARTITION

_PLACES = {PARTITION: pl.Int32, OFFSET: pl.Int64}
_CONTENTS = "_contents"


def placed(records: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of records, and the place of each in its topic; results of an earlier step have none."""
    known = set(records.columns)
    places = [
        records.get_column(name).cast(kind) if name in known else pl.Series(name, [None], kind).new_from_index(0, records.height)
        for name, kind in _PLACES.items()
    ]
    return records[list(columns)].hstack(places)


def in_order_of_arrival(records: pl.DataFrame) -> pl.DataFrame:
    """Placed records by partition and offset; those without a place first, by their time.

    Records of the same place, such as two elements of an array, or of two streams, have no order of their own: their contents decide.
    """
    if not records.select_seq(_before().all()).item():
        records = records.sort(*_PLACES, TIME)
        if not records.select_seq(_before().all()).item():
            records = _fully_sorted(records, [*_PLACES, TIME])
    return records.drop(*_PLACES)


def in_order_of_time(records: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Placed records by key, then by time, then by partition and offset; ties are decided by their contents."""
    return _sorted(records, [*by, TIME, *_PLACES])


def by_key_as_they_came(records: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Placed records by key, then by partition and offset; ties are decided by time and contents."""
    return _sorted(records, [*by, *_PLACES, TIME])


def contents_of(columns: Sequence[str]) -> pl.Expr:
    """The sort columns for records without an order of their own: the same on every run, independent of arrival."""
    return pl.struct(columns).hash(seed=17)


def same_key(by: Sequence[str]) -> pl.Expr:
    """Whether a record has the key of the previous one."""
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in by)
    # A null key equals the null before the first record.
    return same & (pl.int_range(pl.len()) > 0)


def _sorted(records: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    ordered = records.sort(order)
    if not ordered.select_seq(same_key(order).any()).item():
        return ordered
    return _fully_sorted(records, order)


def _fully_sorted(records: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    """Records in an order, with ties decided by their contents."""
    contents = contents_of([name for name in records.columns if name not in _PLACES])
    return records.with_columns_seq(contents.alias(_CONTENTS)).sort(*order, _CONTENTS).drop(_CONTENTS)


def _before() -> pl.Expr:
    """Whether each record is in order after the previous one; the first one is."""
    partition, offset = pl.col(PARTITION), pl.col(OFFSET)
    same = partition == partition.shift(1)
    behind = (partition > partition.shift(1)) | (same & (offset > offset.shift(1)))
    return behind.fill_null(False) | (pl.int_range(pl.len()) == 0)
