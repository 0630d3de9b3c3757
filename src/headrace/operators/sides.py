"""Where records go that no result takes in: late ones and bad ones, each kind of a stream to a topic of its own."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.schema import TIMESTAMP

# What a late record carries beside its own columns.
LATE = (
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


def late_topic(stream: str) -> str:
    return f"{stream}.late"


def dead_topic(stream: str) -> str:
    return f"{stream}.dead"
