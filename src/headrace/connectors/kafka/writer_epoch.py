"""The last epoch of a writer in Kafka, recorded in the transaction of its records as the offset of the writer's own group.

The offset that the group has committed for the topic's first partition is the epoch; the run is the metadata of that offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.connectors.kafka.client import TIMEOUT, admin, patiently, within
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.output import Writer


@dataclass(frozen=True)
class WriterEpoch:
    """The newest run of a writer, and its last epoch; -1 where there is none.

    >>> WriterEpoch.of(WriterEpoch(3, 7).place("views"))
    WriterEpoch(generation=3, epoch=7)
    >>> WriterEpoch.of(WriterEpoch().place("views"))
    WriterEpoch(generation=-1, epoch=-1)
    """

    generation: int = -1
    epoch: int = -1

    @classmethod
    def of(cls, place: Any) -> WriterEpoch:
        """The progress in a committed offset."""
        # A committed offset is that of the next record, so it is one higher; none is below zero.
        return cls(int(place.metadata) if place.metadata else -1, max(place.offset, 0) - 1)

    def place(self, topic: str) -> Any:
        """The offset that a group commits to record this progress."""
        from confluent_kafka import TopicPartition

        return TopicPartition(topic, 0, self.epoch + 1, metadata=str(self.generation))


def group_of(writer: Writer) -> str:
    """The group under which a writer records its epochs."""
    return writer.name


def epoch_in_group(asker: Any, topic: str) -> WriterEpoch:
    """The progress that a consumer's group has recorded; raises the client's errors."""
    from confluent_kafka import TopicPartition

    (place,) = asker.committed([TopicPartition(topic, 0)], TIMEOUT)
    return WriterEpoch.of(place)


def epoch_of(target: KafkaTopic, writer: Writer) -> WriterEpoch:
    """The committed progress of a writer, requested through the process's query client."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    group = group_of(writer)
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(target.topic, 0)])]

    def ask() -> WriterEpoch:
        # Stable: open transactions are not included.
        found = admin(target).list_consumer_group_offsets(asked, require_stable=True, request_timeout=within(target))
        (place,) = found[group].result(TIMEOUT).topic_partitions
        if place.error is not None:
            raise KafkaException(place.error)
        return WriterEpoch.of(place)

    return patiently(target, "looking at", ask)
