"""Where records go that no result takes in: late ones and bad ones, each kind of a stream to a topic of its own."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.schema import TIMESTAMP

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
    return pa.schema([field.with_name(f"late_{field.name}") if field.name in stream.names else field for field in _LATE])


def late_topic(stream: str) -> str:
    return f"{stream}.late"


def dead_topic(stream: str) -> str:
    return f"{stream}.dead"
