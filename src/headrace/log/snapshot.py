"""The latest record of every key at one moment, and the offsets to continue from: no gap, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from headrace.core.errors import SchemaError
from headrace.log.files.cursor import Cursor, Outcomes, ReadLimits
from headrace.log.files.partition import Partition
from headrace.log.upkeep.latest import Keys, key_columns, latest_by_key
from headrace.log.upkeep.maintenance import maintenance_lock


@dataclass(frozen=True)
class Snapshot:
    """`table` has the latest record per key, without keys whose latest record is a tombstone; each partition continues at its
    `next_offsets`."""

    table: pa.Table
    next_offsets: Mapping[int, int]


def snapshot_of(partition: Partition, outcomes: Outcomes | None) -> tuple[list[pa.RecordBatch], int]:
    """The latest records of one partition, and the offset after the last record that was read.

    Compaction of the partition waits meanwhile: otherwise it might remove a record in favor of one that comes after the snapshot.
    """
    with maintenance_lock(partition):
        state = partition.state()
        keys = partition.topic.key or ("_key",)
        first = _Scan(partition, outcomes, (state.start, state.visible), keys)
        count = sum(batch.num_rows for batch in first)
        # The snapshot ends before an open transaction, also if that is committed meanwhile.
        scan = partial(_Scan, partition, outcomes, (state.start, first.next))
        marks = latest_by_key(lambda: _keys(partition, scan(keys)), count)
        names = partition.layout.visible_columns()
        found = []
        number = 0
        for batch in scan((*names, "_tombstone")):
            kept = marks.between(number, number + batch.num_rows)
            number += batch.num_rows
            kept &= ~np.asarray(batch.column("_tombstone").fill_null(False).to_numpy(zero_copy_only=False))
            if kept.any():
                found.append(batch.filter(pa.array(kept)).select(list(names)))
        return found, first.next


class _Scan:
    """Reads the committed records of a partition in a range of offsets; `next` is the offset after it."""

    def __init__(self, partition: Partition, outcomes: Outcomes | None, offsets: tuple[int, int], columns: tuple[str, ...]) -> None:
        self._cursor = Cursor(partition, offsets[0], outcomes=outcomes)
        self._end = offsets[1]
        self._columns = columns

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while batches := self._cursor.read(ReadLimits(), self._columns, until=self._end):
            yield from batches

    @property
    def next(self) -> int:
        return self._cursor.offset


def _keys(partition: Partition, scan: _Scan) -> Iterator[Keys]:
    number = 0
    for batch in scan:
        columns = key_columns(partition.layout, batch)
        if len(columns) == 1 and columns[0].null_count:
            raise SchemaError(
                f"partition {partition.index} of topic {partition.topic.name!r} has records without a key",
                why="a snapshot has the latest record of each key",
                hint="give the topic a key, or read it with log.read(topic)",
            )
        yield number, columns
        number += batch.num_rows
