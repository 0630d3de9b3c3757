"""Where records go that no result takes in: late ones and bad ones, each kind of a stream to a topic of its own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from headrace.core.schema import TIMESTAMP
from headrace.operators.time import END
from headrace.schema.legible import as_json

# Where a record stands in its topic.
PARTITION, OFFSET = "_partition", "_offset"
# Why a source could not decode a record, and the record as text.
PROBLEM, RECORD = "_problem", "_record"

_LATE = (
    pa.field("step", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("watermark", TIMESTAMP),
    pa.field("window_start", TIMESTAMP),
    pa.field("window_end", TIMESTAMP),
)
DEAD_LETTER = pa.schema(
    [
        ("step", pa.string()),
        ("reason", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("record", pa.string()),
    ]
)


def late_columns(stream: pa.Schema) -> pa.Schema:
    """What a late record carries beside the columns of its stream; a name that the stream has itself gets `late_` before it.

    >>> late_columns(pa.schema([("reason", pa.string())])).names
    ['step', 'late_reason', 'watermark', 'window_start', 'window_end']
    """
    return pa.schema([field.with_name(name) for field, name in zip(_LATE, _names(stream.names), strict=True)])


def late_records(original: pl.DataFrame, window: pl.DataFrame, step: str, watermark: int | None) -> pl.DataFrame:
    """Records as they came, with the step they were late for, why, the watermark then, and the window they missed.

    Where records have no window of their own, or none that could be known, it is the watermark that has passed them.
    """
    moment = pl.Datetime("us", "UTC")
    passed, closed = pl.lit("the watermark has passed the record"), pl.lit("every window of the record is closed")
    reason = pl.when(pl.nth(0).is_null()).then(passed).otherwise(closed)
    if watermark is not None and watermark >= END:
        # That is no moment that a calendar has.
        reason, watermark = pl.lit("the input was said to have ended"), None
    mark = pl.lit(watermark, pl.Int64).cast(moment).alias("watermark")
    said = window.select(pl.lit(step).alias("step"), reason.alias("reason"), mark, pl.all().cast(moment))
    return original.hstack(said.rename(dict(zip(said.columns, _names(original.columns), strict=True))))


def dead_letters(original: pl.DataFrame, places: pl.DataFrame, step: str, reasons: pl.Series) -> pl.DataFrame:
    """Bad records as text, with the step they were bad for, why, and the place they came from."""
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
    """Records that never had columns, as text, with why, and the place they came from."""
    return records.select(
        pl.lit(step).alias("step"),
        pl.col(PROBLEM).alias("reason"),
        pl.col(PARTITION).cast(pl.Int32).alias("partition"),
        pl.col(OFFSET).cast(pl.Int64).alias("offset"),
        pl.col(RECORD).alias("record"),
    )


def _names(taken: Sequence[str]) -> list[str]:
    return [f"late_{field.name}" if field.name in taken else field.name for field in _LATE]
