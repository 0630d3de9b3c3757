"""The newest records of a topic as points in time: when each happened and when it arrived; a sample if there are many.

The counts by window are of all records, not of the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.log import Log, Topic
from headrace.log.files.cursor import Cursor, ReadLimits

_MOST = 400
_FIRST = 2_000
# A new page looks back this many records of a partition, to count those of the open windows.
_BACK = 400_000
_BEHIND = 50_000


@dataclass(frozen=True)
class Asked:
    """The offsets that a page has already seen, by partition; the column of the time; and the length of a window in milliseconds, 0 for
    none."""

    since: Mapping[int, int]
    time: str
    window: int = 0


def arrivals_of(log: Log, topic: Topic, asked: Asked) -> dict[str, Any]:
    """Points of the records after the offsets of `since`, their number in each window, and the offsets to continue from."""
    points, following, windows = list[dict[str, Any]](), dict[int, int](), Counter[int]()
    for index in range(topic.partitions):
        partition = log.partition(topic, index)
        state = partition.state()
        back = _BACK if asked.window else _FIRST
        first = min(max(asked.since.get(index, state.visible - back), state.start), state.visible)
        cursor = Cursor(partition, first, outcomes=log.transactions)
        while batches := cursor.read(ReadLimits(rows=_BEHIND), (asked.time, "_appended_at", "_offset")):
            table = pa.Table.from_batches(batches)
            if asked.window:
                windows.update(_counted(table[asked.time], asked.window))
            points += _sampled(table, asked.time, index)
        following[index] = cursor.offset
    return {"arrivals": sorted(points, key=lambda point: point["arrived"]), "next": following, "windows": sorted(windows.items())}


def _counted(times: pa.ChunkedArray, window: int) -> dict[int, int]:
    happened = times.drop_null().cast(pa.int64()).to_numpy() // (1000 * window) * window
    starts, counts = np.unique(happened, return_counts=True)
    return dict(zip(starts.tolist(), counts.tolist(), strict=True))


def _sampled(table: pa.Table, time: str, partition: int) -> list[dict[str, Any]]:
    times, arrived = (table[name].cast(pa.int64()) for name in (time, "_appended_at"))
    chosen = np.flatnonzero(times.is_valid().to_numpy())
    chosen = chosen[:: max(1, -(-len(chosen) // _MOST))]
    happened, stored, offsets = times.fill_null(0).to_numpy(), arrived.to_numpy(), table["_offset"].to_numpy()
    return [
        {
            "time": int(happened[place]) // 1000, "arrived": int(stored[place]) // 1000,
            "partition": partition, "offset": int(offsets[place]),
        }
        for place in chosen.tolist()
    ]  # fmt: skip
