"""Side topics: late records and dead letters, each kind of a stream in a topic of its own."""

from __future__ import annotations

import polars as pl

from headrace.engine.planning.input import PROBLEM, RECORD
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.contract import START, STOP
from headrace.operators.event_time.epoch_time import END
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import MOMENT
from headrace.plan.side_streams import late_names
from headrace.schema.legible import as_json


def late_records(original: pl.DataFrame, late: pl.DataFrame, step: str, watermark: int | None) -> pl.DataFrame:
    """Records as they arrived, with the step they were late for, the reason, the watermark then, and the window they missed."""
    reason = why_late(late, watermark)
    if watermark is not None and watermark >= END:
        # A calendar has no such moment.
        watermark = None
    mark = pl.lit(watermark, pl.Int64).cast(MOMENT).alias("watermark")
    window = (pl.col(name).cast(MOMENT) for name in (START, STOP))
    said = late.select_seq(pl.lit(step).alias("step"), reason.alias("reason"), mark, *window)
    return original.hstack(said.rename(dict(zip(said.columns, late_names(original.columns), strict=True))))


def why_late(late: pl.DataFrame, watermark: int | None) -> pl.Series:
    """The reason why each record is late: the one it has, or by whether the window that it missed is known; and the watermark then."""
    passed, closed = pl.lit("the watermark has passed the record"), pl.lit("every window of the record is closed")
    reason = pl.when(pl.col(START).is_null()).then(passed).otherwise(closed)
    if watermark is not None and watermark >= END:
        reason = pl.repeat("the input was said to have ended", pl.len())
    elif REASON in late.columns:
        reason = pl.col(REASON)
    return late.select_seq(reason.alias("reason")).to_series()


def dead_letters(original: pl.DataFrame, places: pl.DataFrame, step: str, reasons: pl.Series) -> pl.DataFrame:
    """Bad records as text, with the step they were bad for, the reason, and the place they came from."""
    return pl.DataFrame(
        {
            "step": pl.Series([step] * len(reasons)),
            "reason": reasons,
            "partition": places.get_column(PARTITION).cast(pl.Int32),
            "offset": places.get_column(OFFSET).cast(pl.Int64),
            "record": as_json(original),
        }
    )


def undecoded(records: pl.DataFrame, step: str) -> pl.DataFrame:
    """Records that could not be decoded, as text, with the reason, and the place they came from."""
    return records.select_seq(
        pl.lit(step).alias("step"),
        pl.col(PROBLEM).alias("reason"),
        pl.col(PARTITION).cast(pl.Int32).alias("partition"),
        pl.col(OFFSET).cast(pl.Int64).alias("offset"),
        pl.col(RECORD).alias("record"),
    )
