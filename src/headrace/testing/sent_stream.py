"""A stream of the test driver as an input: the records of one `send`, spread over partitions, until an epoch has taken them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa

from headrace.core.columns.keys import encode_keys, partitions_of
from headrace.engine.planning.input import Ahead, Position
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.record_time import ComputedTime
from headrace.plan.nodes import Source


class SentStream:
    """What a test sends to one stream."""

    def __init__(self, source: Source, partitions: int) -> None:
        self._source = source
        self._moment = None if source.time is None else ComputedTime.of(source.time)
        self._ends = dict.fromkeys(range(partitions), 0)
        self._waiting: pl.DataFrame | None = None
        self._latest: dict[int, Mapping[int, int]] = {}

    @property
    def label(self) -> str:
        return f"stream {self._source.name!r}"

    def send(self, table: pa.Table) -> pl.DataFrame:
        """Let records wait for the next epoch, with their places."""
        places = [0] * table.num_rows
        if self._source.key and len(self._ends) > 1:
            keys = encode_keys([table.column(name).combine_chunks() for name in self._source.key])
            # Records without a key go to any partition; here to the first.
            places = [max(0, place) for place in partitions_of(keys, len(self._ends)).tolist()]
        offsets = []
        for place in places:
            offsets.append(self._ends[place])
            self._ends[place] += 1
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        self._latest = {}
        self._waiting = frame.with_columns(pl.Series(PARTITION, places, pl.Int32), pl.Series(OFFSET, offsets, pl.Int64))
        return self._waiting

    def latest(self, limit: int) -> Mapping[int, int]:
        """The latest event time of each partition among the records that wait, without those above a limit."""
        if self._waiting is None or self._moment is None:
            return {}
        if limit not in self._latest:
            times = self._waiting.select(PARTITION, self._moment.times().alias("time")).filter(pl.col("time") <= limit)
            self._latest[limit] = dict(times.group_by(PARTITION).agg(pl.col("time").max()).rows())
        return self._latest[limit]

    def identity(self) -> str:
        return self._source.name

    def beginning(self) -> Position:
        return dict.fromkeys(self._ends, 0)

    def earliest(self, partitions: Sequence[int]) -> Position:
        return dict.fromkeys(partitions, 0)

    def end(self) -> Position:
        return dict(self._ends)

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        return Ahead(end, self.latest(limit))

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        if self._waiting is not None:
            wanted = (pl.col(PARTITION) == partition) & pl.col(OFFSET).is_between(first, last, closed="left")
            yield from self._waiting.filter(wanted).to_arrow().to_batches()

    def done(self, position: Position) -> None:
        self._waiting = None
