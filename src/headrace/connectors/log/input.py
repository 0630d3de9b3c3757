"""A topic of the embedded log as an input of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.input import Ahead, Position, shared_out
from headrace.connectors.loss import lost, removed
from headrace.log import Log
from headrace.log.bell import Watch
from headrace.log.errors import OffsetOutOfRange
from headrace.log.files.cursor import Cursor, max_event_time, sizes
from headrace.log.files.partition import Partition
from headrace.log.topic import Topic
from headrace.log.transactions import Settled


@dataclass(frozen=True)
class LogInput:
    """A topic by its name and the directory of its log; each process opens it on its own."""

    directory: Path
    topic: str
    columns: tuple[str, ...]
    time: str | None
    epoch_bytes: int | None = None
    """About how many bytes of records an epoch reads at most."""

    @property
    def label(self) -> str:
        return f"topic {self.topic!r}"

    def identity(self) -> str:
        return opened(self.directory).topic(self.topic).id

    def beginning(self) -> Position:
        return {partition.index: partition.state().start for partition in self._partitions()}

    def earliest(self, partitions: Sequence[int]) -> Position:
        return {partition.index: partition.state().start for partition in self._partitions() if partition.index in partitions}

    def end(self) -> Position:
        transactions = opened(self.directory).transactions
        return {partition.index: transactions.stable_end(partition) for partition in self._partitions()}

    def watches(self) -> list[Watch]:
        """The words that change when there may be more to read."""
        return [*(partition.watch() for partition in self._partitions()), opened(self.directory).transactions.watch()]

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        log = opened(self.directory)
        topic = log.topic(self.topic)
        position, latest = self._bounded(topic, start, shared_out(start, end, rows)), {}
        for index, last in position.items():
            first = start.get(index, 0)
            if last > first and self.time is not None:
                found = self._latest(topic, index, (first, last), limit)
                if found is not None:
                    latest[index] = found
        return Ahead(position, latest)

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        log = opened(self.directory)
        cursor = Cursor(log.partition(log.topic(self.topic), partition), first, outcomes=Settled(log.transactions))
        try:
            while batches := cursor.read(columns=(*self.columns, "_partition", "_offset"), until=last):
                yield from batches
        except OffsetOutOfRange as error:
            raise removed(self.label, partition, cursor.offset, cursor.partition.state().start) from error
        if cursor.offset < last:
            raise lost(self.label, partition, cursor.offset, last)

    def done(self, position: Position) -> None:
        """Does nothing: the log shows a job's progress from its own topics."""

    def _bounded(self, topic: Topic, start: Position, end: Position) -> Position:
        """As far toward `end` as the bytes of an epoch allow; every partition moves by the same share."""
        if self.epoch_bytes is None:
            return end
        log = opened(self.directory)
        moving = {index: (start.get(index, 0), last) for index, last in end.items() if last > start.get(index, 0)}
        known = {index: sizes(log.partition(topic, index), *span) for index, span in moving.items()}
        total = sum(float(size[-1]) for _, size in known.values() if len(size))
        if total <= self.epoch_bytes:
            return end
        share = self.epoch_bytes / total
        reached = {index: _reached(moving[index][0], *found, share) for index, found in known.items() if len(found[0])}
        return {**end, **reached}

    def _latest(self, topic: Topic, index: int, offsets: tuple[int, int], limit: int) -> int | None:
        """The latest event time among these records: from the topic's index, if the topic has the same time column."""
        if topic.time == self.time:
            log = opened(self.directory)
            return max_event_time(log.partition(topic, index), *offsets, limit, Settled(log.transactions))
        assert self.time is not None
        times = [batch.column(self.time).cast(pa.int64()) for batch in self.read(index, *offsets)]
        latest = [pc.max(known.filter(pc.less_equal(known, limit))).as_py() for known in times]
        return max((time for time in latest if time is not None), default=None)

    def _partitions(self) -> list[Partition]:
        log = opened(self.directory)
        topic = log.topic(self.topic)
        return [log.partition(topic, index) for index in range(topic.partitions)]


def _reached(first: int, ends: np.ndarray, size: np.ndarray, share: float) -> int:
    """The offset at which about this share of the bytes is read; at least one record."""
    reached = int(np.interp(float(size[-1]) * share, [0.0, *size], [first, *ends]))
    return max(reached, first + 1)


_logs: dict[Path, Log] = {}


def opened(directory: Path) -> Log:
    """One log for each process: Spark's Python workers live over many epochs. A log that is gone from disk is dropped with its files."""
    if directory not in _logs:
        for removed_log in [other for other in _logs if not other.exists()]:
            del _logs[removed_log]
        _logs[directory] = Log(directory)
    return _logs[directory]
