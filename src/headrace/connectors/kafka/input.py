"""A topic of Kafka as an input of the engine.

Event time and the offset. The engine writes an epoch's offset, with the watermark in it, before the epoch runs. A log of ours knows the
latest event time of any range from its index; Kafka has no such index. So the planner looks at the end of each range: it reads the last
records of every partition that moves (all of them where they are few), decodes their time column alone, and that is the time that
goes into the offset. A replayed epoch takes it from there, so it makes the same decisions. What the planner sees is a part of the
range, so the watermark may be earlier than it could be, never later: an epoch of few records, as in steady operation, is seen
whole and its time is exact; of a long range (catching up) a record ahead of the last ones counts only when a later one
reaches its time. The other way, readers that report and a next epoch that carries it, is exact but an epoch late, which
would hold every result back by one epoch, and until the next record where a stream pauses.
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
from headrace.connectors.kafka.client import TIMEOUT, admin, consumer, patiently, topic_of, within
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.kafka.reading import Spans, messages
from headrace.connectors.kafka.records import Records
from headrace.core.errors import ConnectorError, SettingsError

# How many records at the end of a partition's range tell its event time; more if none of them has one.
LOOK_BACK = 1_000
_FURTHER = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KafkaInput:
    """A topic, the columns that a stream declares, and the group under which progress is shown; connected in each process anew."""

    source: KafkaTopic
    columns: pa.Schema
    time: str | None
    group: str

    def __reduce__(self) -> tuple[type[KafkaInput], tuple[object, ...]]:
        # What a process has made of it stays there.
        return KafkaInput, (self.source, self.columns, self.time, self.group)

    def beginning(self) -> Position:
        partitions, start = self._partitions(), self.source.start
        if isinstance(start, str):
            return self._offsets(partitions, start)
        if isinstance(start, datetime):
            ends = self._offsets(partitions, "latest")
            found = self._offsets(partitions, int(start.timestamp() * 1000))
            # Where no record is that young, Kafka says -1.
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
        position = shared_out(start, end, min(bounds, default=None))
        spans = {index: (start.get(index, 0), last) for index, last in position.items() if last > start.get(index, 0)}
        return Ahead(position, self._latest(spans, limit) if self.time is not None else {})

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        for found in messages(self.source, self.group, {partition: (first, last)}):
            yield self._records.batch(found)

    def done(self, position: Position) -> None:
        """Commit to the group. The checkpoint decides where the job goes on, so a commit that fails is only told."""
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(self.source.topic, partition, offset) for partition, offset in position.items()]
        try:
            consumer(self.source, self.group).commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            _log.warning("group %s: the progress in topic %s could not be committed: %s", self.group, self.source.topic, error.args[0])

    @cached_property
    def _records(self) -> Records:
        return Records(self.source, self.columns)

    @cached_property
    def _times(self) -> Records:
        """Records of which only the time is of interest."""
        assert self.time is not None
        return Records(self.source, pa.schema([self.columns.field(self.time).with_nullable(True)]))

    def _latest(self, spans: Spans, limit: int) -> dict[int, int]:
        """The latest event time at the end of each range, up to `limit`."""
        latest: dict[int, int] = {}
        back = LOOK_BACK
        waiting = dict(spans)
        while waiting:
            looked = {index: (max(first, last - back), last) for index, (first, last) in waiting.items()}
            for found in messages(self.source, self.group, looked):
                for index, time in self._seen(self._times.batch(found), limit):
                    latest[index] = max(time, latest.get(index, time))
            # Only where nothing was found, and only what was not looked at yet.
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
            raise ConnectorError(
                f"there is no topic {self.source.topic!r} on {self.source.servers}: {found.error.str()}", hint="create it, or use its name"
            )
        return sorted(found.partitions)

    def _offsets(self, partitions: list[int], place: str | int) -> dict[int, int]:
        """The offset of a place, or the first that is not before a moment in milliseconds, in each partition."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # it is public, its module does not say so

        spec: Any = OffsetSpec.for_timestamp(place) if isinstance(place, int) else getattr(OffsetSpec, place)()
        level = getattr(IsolationLevel, self.source.isolation.upper())
        asked = {TopicPartition(self.source.topic, partition): spec for partition in partitions}

        def ask() -> dict[int, int]:
            answers = admin(self.source).list_offsets(asked, isolation_level=level, request_timeout=within(self.source))
            return {place.partition: answer.result(TIMEOUT).offset for place, answer in answers.items()}

        return patiently(self.source, "asking for the offsets of", ask)
