"""The panes of windows: the results that the topic of a view has of each window, and when they were emitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.log import Log, Topic
from headrace.log.files.cursor import Cursor, ReadLimits

# A view without these has no panes to tell apart.
COLUMNS = ("window_start", "pane")
# A new page looks back this many records of a partition.
_BACK, _AT_A_TIME = 100_000, 50_000


def panes_of(log: Log, topic: Topic, since: Mapping[int, int]) -> dict[str, Any]:
    """The panes in the records after some offsets, and the offsets to continue from: a pane has its window, its kind, its epoch, when it
    was emitted, and its number of rows."""
    found, following = list[pl.DataFrame](), dict[int, int]()
    for index in range(topic.partitions):
        partition = log.partition(topic, index)
        state = partition.state()
        first = min(max(since.get(index, state.visible - _BACK), state.start), state.visible)
        cursor = Cursor(partition, first, outcomes=log.transactions)
        while batches := cursor.read(ReadLimits(rows=_AT_A_TIME), (*COLUMNS, "_sequence", "_appended_at")):
            found.append(_counted(pl.DataFrame(pa.Table.from_batches(batches))))
        following[index] = cursor.offset
    panes = [] if not found else _merged(pl.concat(found)).rows()
    return {"panes": [list(pane) for pane in panes], "next": following}


def _counted(records: pl.DataFrame) -> pl.DataFrame:
    records = records.drop_nulls(list(COLUMNS))
    grouped = records.group_by("window_start", "pane", "_sequence").agg(pl.col("_appended_at").max(), rows=pl.len())
    return grouped.with_columns(pl.col("window_start", "_appended_at").dt.epoch("ms"))


def _merged(panes: pl.DataFrame) -> pl.DataFrame:
    merged = panes.group_by("window_start", "pane", "_sequence").agg(pl.col("_appended_at").max(), pl.col("rows").sum())
    return merged.sort("_appended_at", "window_start")
