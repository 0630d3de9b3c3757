"""Side topics: late records and dead letters, each kind of a stream in a topic of its own."""

from __future__ import annotations

import polars as pl

from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.epoch_time import END
from headrace.plan.side_streams import late_names
from headrace.schema.legible import as_json

# The reason why a source could not decode a record, and the record as text.
PROBLEM, RECORD = "_problem", "_record"


def late_records(original: pl.DataFrame, window: pl.DataFrame, step: str, watermark: int | None) -> pl.DataFrame:
    """Records as they arrived, with the step they were late for, the reason, the watermark then, and the window they missed.

    Where records have no known window of their own, the reason is that the watermark has passed them.
    """
    moment = pl.Datetime("us", "UTC")
    without, within = (pl.lit(why_late(start, watermark)) for start in (None, 0))
    reason = pl.when(pl.nth(0).is_null()).then(without).otherwise(within)
    if watermark is not None and watermark >= END:
        # A calendar has no such moment.
        watermark = None
    mark = pl.lit(watermark, pl.Int64).cast(moment).alias("watermark")
    said = window.select_seq(pl.lit(step).alias("step"), reason.alias("reason"), mark, pl.all().cast(moment))
    return original.hstack(said.rename(dict(zip(said.columns, late_names(original.columns), strict=True))))


def why_late(start: int | None, watermark: int | None) -> str:
    """The reason why a record is late: by the start of the window that it missed, if that is known, and the watermark then."""
    if watermark is not None and watermark >= END:
        return "the input was said to have ended"
    return "the watermark has passed the record" if start is None else "every window of the record is closed"


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
