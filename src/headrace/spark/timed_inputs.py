"""Inputs of streams, with the event time as the stream declares it.

A time that is a column is known to the input itself: the log has it in its index. A time that is an expression is computed here, from the
records that an epoch is about to take in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.input import Ahead, Input, Position, bounded
from headrace.connectors.log.input import LogInput
from headrace.plan.nodes import Source
from headrace.plan.source_time import EventTime

# The number of records at the end of a partition's range that determine its event time where not all are at hand; more if none has one.
_LOOK_BACK, _FURTHER = 1_000, 16


def input_of(source: Source, app: str, log: Path, epoch_bytes: int | None = None) -> Input:
    """What a job reads a stream from; of a topic an epoch reads about `epoch_bytes` at most."""
    return _timed(source, bounded(_input(source, source.columns, app, log), epoch_bytes), app, log)


def times_of_input(source: Source, app: str, log: Path) -> Input:
    """The same records, with only the columns that the event time needs."""
    return _timed(source, _input(source, _needed(source), app, log), app, log)


def _timed(source: Source, records: Input, app: str, log: Path) -> Input:
    if source.time is None or source.time.column is not None:
        return records
    return TimedInput(records, _input(source, _needed(source), app, log), source.time, nearby=source.connector is None)


def _needed(source: Source) -> pa.Schema:
    assert source.time is not None
    return pa.schema([source.columns.field(name).with_nullable(True) for name in source.time.columns])


def _input(source: Source, columns: pa.Schema, app: str, log: Path) -> Input:
    time = None if source.time is None else source.time.column
    if source.connector is not None:
        found: Input = source.connector.input(columns, time, app)
        return found
    return LogInput(log, source.name, tuple(columns.names), time)


@dataclass(frozen=True)
class TimedInput:
    """An input whose event time is an expression; `times` reads the same records, and only the columns that the expression needs.

    Records that are `nearby` are all read, so that the latest time is exact. From elsewhere only the end of a range is read twice, as with
    a column: the watermark may then be earlier than it could be, never later.
    """

    records: Input
    times: Input
    time: EventTime
    nearby: bool

    @property
    def label(self) -> str:
        return self.records.label

    def identity(self) -> str:
        return self.records.identity()

    def beginning(self) -> Position:
        return self.records.beginning()

    def earliest(self, partitions: Sequence[int]) -> Position:
        return self.records.earliest(partitions)

    def end(self) -> Position:
        return self.records.end()

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        position = self.records.ahead(start, end, rows, limit).position
        found = {index: self._latest(index, start.get(index, 0), last, limit) for index, last in position.items()}
        return Ahead(position, {index: time for index, time in found.items() if time is not None})

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        return self.records.read(partition, first, last)

    def done(self, position: Position) -> None:
        self.records.done(position)

    def _latest(self, partition: int, first: int, last: int, limit: int) -> int | None:
        back = last - first if self.nearby else _LOOK_BACK
        while last > first:
            begin = max(first, last - back)
            found = [time for batch in self.times.read(partition, begin, last) if (time := self._latest_of(batch, limit)) is not None]
            if found:
                return max(found)
            last, back = begin, back * _FURTHER
        return None

    def _latest_of(self, batch: pa.RecordBatch, limit: int) -> int | None:
        # A process that plans epochs of streams whose time is a column need not load the expressions.
        from headrace.operators.event_time.record_time import times_of

        times = times_of(self.time, batch)
        found: int | None = pc.max(times.filter(pc.less_equal(times, limit))).as_py()
        return found
