"""A topic of Kafka as an input of the engine.

Event time and the offset. The engine writes an epoch's offset, including the watermark, before the epoch runs. Our own log has the latest
event time of any range in its index; Kafka has no such index. So the planner reads the end of each range: the last records of every
partition that moves (all of them where they are few). It decodes only their time column, and stores the latest time in the offset. A
replayed epoch takes the time from there, so it makes the same decisions. The planner sees only a part of a long range, so the watermark may
be earlier than it could be, never later. An epoch of few records, as in steady operation, is seen as a whole and its time is exact. In a
long range (catching up), a time ahead of the last records counts only when a later record reaches it. The alternative is to let readers
report to the next epoch: this is exact, but delays every result by one epoch, and until the next record where a stream pauses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.input import Ahead, Position, shared_out
from headrace.connectors.kafka.client import TIMEOUT, admin, consumer, missing, patiently, topic_id, topic_of, within
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.kafka.reading import OutOfRange, Spans, messages
from headrace.connectors.kafka.record_sizes import RecordSizes
from headrace.connectors.kafka.records import Records
from headrace.connectors.loss import InputLost, removed, shrunk
from headrace.core.errors import SettingsError

# The number of records at the end of a partition's range that determine its event time; more if none of them has one.
LOOK_BACK = 1_000
_FURTHER = 16
# How many records at the beginning of a partition's range tell the size of the others. An epoch of so few is not bounded by bytes.
SAMPLE = 100
# How much larger than those that were seen the next records may be without another look.
_UNLIKE = 4

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KafkaInput:
    """A topic, the columns that a stream declares, and the group that shows progress; each process connects on its own."""

    source: KafkaTopic
    columns: pa.Schema
    time: str | None
    group: str
    epoch_bytes: int | None = None
    """About how many bytes of records an epoch reads at most."""

    def __reduce__(self) -> tuple[type[KafkaInput], tuple[object, ...]]:
        # The state of a process is not pickled.
        return KafkaInput, (self.source, self.columns, self.time, self.group, self.epoch_bytes)

    @property
    def label(self) -> str:
        return f"topic {self.source.topic!r}"

    def identity(self) -> str:
        return topic_id(self.source)

    def beginning(self) -> Position:
        partitions, start = self._partitions(), self.source.start
        if isinstance(start, str):
            return self._offsets(partitions, start)
        if isinstance(start, datetime):
            ends = self._offsets(partitions, "latest")
            found = self._offsets(partitions, int(start.timestamp() * 1000))
            # Where no record is that young, Kafka returns -1.
            return {partition: ends[partition] if offset < 0 else offset for partition, offset in found.items()}
        earliest = self._offsets(partitions, "earliest")
        for partition, offset in start.items():
            if partition not in earliest or offset < earliest[partition]:
                held = f"it begins at {earliest[partition]}" if partition in earliest else f"it has {len(partitions)} partitions"
                raise SettingsError(f"topic {self.source.topic!r} has no offset {offset} in partition {partition}: {held}")
        return {**earliest, **start}

    def earliest(self, partitions: Sequence[int]) -> Position:
        return self._offsets(list(partitions), "earliest")

    def end(self) -> Position:
        return self._offsets(self._partitions(), "latest")

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        bounds = [bound for bound in (rows, self.source.rows_per_epoch) if bound is not None]
        position = self._bounded(start, shared_out(start, end, min(bounds, default=None)))
        spans = {index: (start.get(index, 0), last) for index, last in position.items() if last > start.get(index, 0)}
        return Ahead(position, self._latest(spans, limit) if self.time is not None else {})

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        for found in self._messages({partition: (first, last)}):
            yield self._records.batch(found)

    def done(self, position: Position) -> None:
        """Commit to the group. The checkpoint decides where the job continues, so a failed commit is only logged."""
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(self.source.topic, partition, offset) for partition, offset in position.items()]
        try:
            consumer(self.source, self.group).commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            _log.warning("group %s: the progress in topic %s could not be committed: %s", self.group, self.source.topic, error.args[0])

    def _messages(self, spans: Spans) -> Iterator[list[Any]]:
        try:
            yield from messages(self.source, self.group, spans)
        except OutOfRange as error:
            raise self._gone(error.partition, error.offset) from error

    def _gone(self, partition: int, offset: int) -> InputLost:
        """Why a partition does not have an offset: retention removed it, or the partition ends before it."""
        earliest, end = self.earliest([partition])[partition], self._offsets([partition], "latest")[partition]
        return removed(self.label, partition, offset, earliest) if offset < earliest else shrunk(self.label, partition, end, offset)

    def _bounded(self, start: Position, end: Position) -> Position:
        """As far toward `end` as the bytes of an epoch go, by the size of records that were seen."""
        spans = {index: (start.get(index, 0), last) for index, last in end.items() if last > start.get(index, 0)}
        records = sum(last - first for first, last in spans.values())
        if self.epoch_bytes is None or records <= SAMPLE:
            return end
        # A look costs a round trip: none is needed while what was seen before is far below the bound.
        known = self._sizes.expected(spans)
        if known is None or known * _UNLIKE > self.epoch_bytes:
            looked = {index: (first, min(first + SAMPLE, last)) for index, (first, last) in spans.items()}
            for found in self._messages(looked):
                self._sizes.learn(found)
        expected = self._sizes.expected(spans)
        if expected is None or expected <= self.epoch_bytes:
            return end
        return shared_out(start, end, max(1, int(records * self.epoch_bytes / expected)))

    @cached_property
    def _sizes(self) -> RecordSizes:
        return RecordSizes()

    @cached_property
    def _records(self) -> Records:
        return Records(self.source, self.columns)

    @cached_property
    def _times(self) -> Records:
        """Records of which only the time is needed."""
        assert self.time is not None
        return Records(self.source, pa.schema([self.columns.field(self.time).with_nullable(True)]))

    def _latest(self, spans: Spans, limit: int) -> dict[int, int]:
        """The latest event time at the end of each range, up to `limit`."""
        latest: dict[int, int] = {}
        back = LOOK_BACK
        waiting = dict(spans)
        while waiting:
            looked = {index: (max(first, last - back), last) for index, (first, last) in waiting.items()}
            for found in self._messages(looked):
                self._sizes.learn(found)
                for index, time in self._seen(self._times.batch(found), limit):
                    latest[index] = max(time, latest.get(index, time))
            # Only where nothing was found, and only in records that were not read yet.
            waiting = {
                index: (first, looked[index][0])
                for index, (first, _) in waiting.items()
                if index not in latest and looked[index][0] > first
            }
            back *= _FURTHER
        return latest

    def _seen(self, batch: pa.RecordBatch, limit: int) -> Iterator[tuple[int, int]]:
        times = batch.column(self.time).cast(pa.int64())
        known = pa.table({"partition": batch.column("_partition"), "time": times}).filter(pc.less_equal(times, limit))
        found = known.group_by("partition").aggregate([("time", "max")])
        yield from zip(found["partition"].to_pylist(), found["time_max"].to_pylist(), strict=True)

    def _partitions(self) -> list[int]:
        found = topic_of(self.source)
        if found.error is not None:
            raise missing(self.source, found.error.str())
        return sorted(found.partitions)

    def _offsets(self, partitions: list[int], place: str | int) -> dict[int, int]:
        """The offset of a place, or the first one that is not before a moment in milliseconds, in each partition."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # it is public, its module does not say so

        spec: Any = OffsetSpec.for_timestamp(place) if isinstance(place, int) else getattr(OffsetSpec, place)()
        level = getattr(IsolationLevel, self.source.isolation.upper())
        asked = {TopicPartition(self.source.topic, partition): spec for partition in partitions}

        def ask() -> dict[int, int]:
            answers = admin(self.source).list_offsets(asked, isolation_level=level, request_timeout=within(self.source))
            return {place.partition: answer.result(TIMEOUT).offset for place, answer in answers.items()}

        return patiently(self.source, "asking for the offsets of", ask)
