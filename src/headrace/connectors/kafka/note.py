"""What a writer notes of its epochs in Kafka: in the transaction of its records, as the offset of a group of its own.

The offset that the group has committed for the topic's first partition is the epoch, and the run is the text beside that offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.connectors.kafka.client import TIMEOUT, admin, patiently, within
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.output import Writer


@dataclass(frozen=True)
class Note:
    """The newest run of a writer, and its last epoch; -1 where there is none.

    >>> Note.of(Note(3, 7).place("views"))
    Note(generation=3, epoch=7)
    >>> Note.of(Note().place("views"))
    Note(generation=-1, epoch=-1)
    """

    generation: int = -1
    epoch: int = -1

    @classmethod
    def of(cls, place: Any) -> Note:
        """What the place that a group has committed says."""
        # An offset is that of the next record; none is below zero.
        return cls(int(place.metadata) if place.metadata else -1, max(place.offset, 0) - 1)

    def place(self, topic: str) -> Any:
        """The place that a group commits to say so."""
        from confluent_kafka import TopicPartition

        return TopicPartition(topic, 0, self.epoch + 1, metadata=str(self.generation))


def group_of(writer: Writer) -> str:
    """The group in whose name a writer notes its epochs."""
    return writer.name


def noted_by(asker: Any, topic: str) -> Note:
    """What a consumer's group has noted; raises what the client raises."""
    from confluent_kafka import TopicPartition

    (place,) = asker.committed([TopicPartition(topic, 0)], TIMEOUT)
    return Note.of(place)


def noted(target: KafkaTopic, writer: Writer) -> Note:
    """What a writer has noted and committed, asked by the one client that a process has for questions."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    group = group_of(writer)
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(target.topic, 0)])]

    def ask() -> Note:
        # Stable: of a transaction that is open nothing is told.
        found = admin(target).list_consumer_group_offsets(asked, require_stable=True, request_timeout=within(target))
        (place,) = found[group].result(TIMEOUT).topic_partitions
        if place.error is not None:
            raise KafkaException(place.error)
        return Note.of(place)

    return patiently(target, "looking at", ask)
