"""Lateness without windows: a record is late if the watermark has passed it."""

from __future__ import annotations

import polars as pl

from headrace.operators.changes import TIME
from headrace.operators.contract import START, STOP
from headrace.operators.nulls import filled


def in_time(records: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The records that are not before a moment, and the late ones, which missed no window; None if there are none.

    A record without a time is never late.
    """
    times = records.get_column(TIME)
    if (filled(times, limit) >= limit).all():
        return records, None
    is_late = (times < limit).fill_null(False)
    unknown = pl.lit(None, pl.Int64)
    return records.filter(~is_late), records.filter(is_late).with_columns_seq(unknown.alias(START), unknown.alias(STOP))
