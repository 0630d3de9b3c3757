"""A topic of the embedded log as an input of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.input import Ahead, Position, shared_out
from headrace.log import Log
from headrace.log.cursor import Cursor, max_event_time
from headrace.log.partition import Partition
from headrace.log.topic import Topic


@dataclass(frozen=True)
class LogInput:
    """A topic by its name and the directory of its log; opened anew in each process that uses it."""

    directory: Path
    topic: str
    columns: tuple[str, ...]
    time: str | None

    def beginning(self) -> Position:
        return {partition.index: partition.state().start for partition in self._partitions()}

    def earliest(self, partitions: Sequence[int]) -> Position:
        return {partition.index: partition.state().start for partition in self._partitions() if partition.index in partitions}

    def end(self) -> Position:
        return {partition.index: partition.state().visible for partition in self._partitions()}

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        log = opened(self.directory)
        topic = log.topic(self.topic)
        position, latest = shared_out(start, end, rows), {}
        for index, last in position.items():
            first = start.get(index, 0)
            if last > first and self.time is not None:
                found = self._latest(topic, index, (first, last), limit)
                if found is not None:
                    latest[index] = found
        return Ahead(position, latest)

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        log = opened(self.directory)
        cursor = Cursor(log.partition(log.topic(self.topic), partition), first, outcomes=log.transactions)
        while batches := cursor.read(columns=(*self.columns, "_partition", "_offset"), until=last):
            yield from batches

    def done(self, position: Position) -> None:
        """Nobody is to be told: the log shows a job's progress from its own topics."""

    def _latest(self, topic: Topic, index: int, offsets: tuple[int, int], limit: int) -> int | None:
        """The latest event time among these records: from the topic's index, which has it if the topic has the same time column."""
        if topic.time == self.time:
            return max_event_time(opened(self.directory).partition(topic, index), *offsets, limit)
        assert self.time is not None
        times = [batch.column(self.time).cast(pa.int64()) for batch in self.read(index, *offsets)]
        latest = [pc.max(known.filter(pc.less_equal(known, limit))).as_py() for known in times]
        return max((time for time in latest if time is not None), default=None)

    def _partitions(self) -> list[Partition]:
        log = opened(self.directory)
        topic = log.topic(self.topic)
        return [log.partition(topic, index) for index in range(topic.partitions)]


_logs: dict[Path, Log] = {}


def opened(directory: Path) -> Log:
    """One log a process: Spark's Python workers live over many epochs."""
    if directory not in _logs:
        _logs[directory] = Log(directory)
    return _logs[directory]
