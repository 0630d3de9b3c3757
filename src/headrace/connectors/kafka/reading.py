"""Reads of offset ranges from Kafka, each complete or an error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from headrace.connectors.kafka.client import consumer, failure, passing, translated
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.core.durations import spelled
from headrace.core.errors import ConnectorError

Spans = Mapping[int, tuple[int, int]]

_MOST = 20_000
_WAIT = 0.05


def messages(source: KafkaTopic, group: str, spans: Spans) -> Iterator[list[Any]]:
    """All records of some partitions, each from one offset up to another; several partitions are interleaved, each in its order.

    The end of a range must be below the broker's end. Then a later record, or the end of the partition, proves that nothing is missing,
    even where the last offsets are transaction markers or aborted records, or were compacted away.
    """
    from confluent_kafka import TopicPartition

    reading = RangeReading(source, spans)
    if not reading.open:
        return
    client = consumer(source, group)
    with translated(source, "reading"):
        client.assign([TopicPartition(source.topic, partition, first) for partition, (first, _) in spans.items()])
    try:
        while reading.open:
            with translated(source, "reading"):
                found = client.consume(min(_MOST, reading.left), _WAIT)
            kept = reading.taken(found)
            if kept:
                yield kept
    finally:
        # A consumer that was closed meanwhile has nothing to release.
        with suppress(RuntimeError):
            client.unassign()


class OutOfRange(ConnectorError):
    """A partition does not have the offset that is to be read next."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(f"partition {partition} of topic {topic!r} does not have offset {offset}")
        self.partition, self.offset = partition, offset


class RangeReading:
    """The position in each partition."""

    def __init__(self, source: KafkaTopic, spans: Spans) -> None:
        self._source = source
        self._ends = {partition: last for partition, (_, last) in spans.items()}
        self._places = {partition: first for partition, (first, _) in spans.items()}
        self.open = {partition for partition, (first, last) in spans.items() if first < last}
        self._heard_at = time.monotonic()

    @property
    def left(self) -> int:
        """The number of missing records, at most."""
        return sum(self._ends[partition] - self._places[partition] for partition in self.open)

    def taken(self, found: list[Any]) -> list[Any]:
        """The records that belong to the ranges, of those that a client returned."""
        events = [message for message in found if message.error() is not None]
        kept = [message for message in found if message.error() is None] if events else found
        if kept:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at > self._source.patience.total_seconds():
            raise failure(self._source, "reading", f"no answer for {spelled(self._source.patience)} at offsets {self._places}")
        inside = self._inside(kept)
        # After the records: the end of a partition follows its last records, often in the same answer.
        for event in events:
            self._event(event)
        return inside

    def _inside(self, kept: list[Any]) -> list[Any]:
        if len(self._ends) > 1:
            return [message for message in kept if self._belongs(message)]
        [(partition, end)] = self._ends.items()
        if kept:
            self._reached(partition, kept[-1].offset() + 1)
        while kept and kept[-1].offset() >= end:
            kept.pop()
        return kept

    def _belongs(self, message: Any) -> bool:
        partition, offset = message.partition(), message.offset()
        inside = partition in self.open and offset < self._ends[partition]
        if partition in self.open:
            self._reached(partition, offset + 1)
        return inside

    def _reached(self, partition: int, place: int) -> None:
        self._places[partition] = min(place, self._ends[partition])
        if place >= self._ends[partition]:
            self.open.discard(partition)

    def _event(self, message: Any) -> None:
        from confluent_kafka import KafkaError

        error, partition = message.error(), message.partition()
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            if partition in self.open and message.offset() >= self._ends[partition]:
                self._reached(partition, message.offset())
        elif error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):  # noqa: SLF001 - its public name
            raise OutOfRange(self._source.topic, partition, self._places[partition])
        elif error.fatal() or not passing(error):
            raise failure(self._source, "reading", error.str())
