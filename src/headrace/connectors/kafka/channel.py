"""The way of one writer's records into a topic of Kafka.

A note of the epoch is sent in the transaction of the records. `init_transactions` shuts out every earlier producer of the writer, and
aborts what it left open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from headrace.connectors.kafka.client import TIMEOUT, client_settings, failure
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.kafka.note import Note, group_of, noted_by
from headrace.connectors.kept import Kept
from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.core.keys import partitions_of

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)
# What another try does not mend.
_FINAL = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "_AUTHENTICATION",
          "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "INVALID_TOPIC_EXCEPTION", "MSG_SIZE_TOO_LARGE", "_INVALID_ARG")  # fmt: skip


class ProducerLost(Exception):
    """A producer failed, or was shut out; a new one may find that its epoch is there, or write it."""


@dataclass(frozen=True)
class Records:
    """Keys and values in their order; a value that is None removes its key."""

    keys: list[bytes | None]
    values: list[bytes | None]


class Channel:
    """A producer of one writer. After any failure nobody knows what it still does: it is thrown away, never tried again."""

    def __init__(self, target: KafkaTopic, writer: Writer) -> None:
        from confluent_kafka import Producer

        self._target, self._writer = target, writer
        self._epoch = -1
        shared = {**client_settings(target), "enable.idempotence": True, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
        if target.at_least_once:
            self._producer: Any = Producer(shared, logger=_log)
        else:
            self._asker = _asker(target, writer)
            self._producer = Producer({**shared, "transactional.id": writer.name}, logger=_log)
            self._sure(lambda: self._producer.init_transactions(TIMEOUT))
            note = self._sure(lambda: noted_by(self._asker, target.topic))
            if note.generation > writer.generation:
                raise writer.fenced()
            self._epoch = note.epoch
            if note.generation < writer.generation:
                # Durable at once: a writer of an earlier run that comes now finds it.
                self._sure(self._producer.begin_transaction)
                self._commit(self._epoch)
        self._partitions = self._count()

    def write(self, epoch: int, records: Records) -> bool:
        """Send the records of an epoch, and wait until they are there for good; False if they are already."""
        if epoch <= self._epoch:
            return False
        failpoints.reach("kafka.send.before")
        if self._target.at_least_once:
            self._sure(lambda: self._send(records))
            if self._producer.flush(TIMEOUT) or self._refused:
                raise ProducerLost(str(self._refused or "brokers did not take the records in time"))
            return True
        self._sure(self._producer.begin_transaction)
        self._sure(lambda: self._send(records))
        self._commit(epoch)
        self._epoch = epoch
        failpoints.reach("kafka.commit.after")
        return True

    def close(self) -> None:
        """Leave without a word: what is open is aborted by the next producer, or when its time is over."""
        self._producer.purge()
        if not self._target.at_least_once:
            self._asker.close()

    def _send(self, records: Records) -> None:
        self._refused: object = None
        places = partitions_of(pa.array(records.keys, pa.binary()), self._partitions).tolist() if records.keys else []
        topic, produce = self._target.topic, self._producer.produce
        for key, value, place in zip(records.keys, records.values, places, strict=True):
            while True:
                try:
                    # -1: a record without a key goes to any partition.
                    produce(topic, value, key, partition=place, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _delivered(self, error: object, _message: object) -> None:
        self._refused = self._refused or error

    def _commit(self, epoch: int) -> None:
        place = Note(self._writer.generation, epoch).place(self._target.topic)
        self._sure(lambda: self._producer.send_offsets_to_transaction([place], self._asker.consumer_group_metadata(), TIMEOUT))
        failpoints.reach("kafka.commit.before")
        self._sure(lambda: self._producer.commit_transaction(TIMEOUT))

    def _count(self) -> int:
        found = self._sure(lambda: self._producer.list_topics(self._target.topic, TIMEOUT)).topics[self._target.topic]
        return len(found.partitions) or 1

    def _sure(self, ask: Callable[[], Answer]) -> Answer:
        from confluent_kafka import KafkaException

        try:
            return ask()
        except KafkaException as error:
            cause = error.args[0]
            if cause.name() in _FINAL:
                raise failure(self._target, "writing to", str(cause)) from error
            raise ProducerLost(str(cause)) from error


def _asker(target: KafkaTopic, writer: Writer) -> Any:
    from confluent_kafka import Consumer

    return Consumer({**client_settings(target), "group.id": group_of(writer), "enable.auto.commit": False}, logger=_log)


def write(target: KafkaTopic, writer: Writer, epoch: int, records: Records) -> bool:
    """Send an epoch by this process's channel of a writer."""
    purpose = (target.servers, target.topic, writer)
    try:
        return channels.get(purpose, lambda: Channel(target, writer)).write(epoch, records)
    except BaseException:
        channels.drop(purpose)
        raise


channels = Kept[Channel](close=Channel.close)
