"""Frames of polars as Arrow of exactly the types that Spark declares."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headrace.plan.expressions.kinds import plain


def typed_table(frame: pl.DataFrame, columns: pa.Schema) -> pa.Table:
    """These columns of a frame, in their types."""
    return frame.select(columns.names).to_arrow().cast(pa.schema([pa.field(one.name, plain(one.type)) for one in columns]))
