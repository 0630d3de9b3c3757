"""The producer of one writer's records for a topic of Kafka.

The epoch is recorded in the transaction of the records. `init_transactions` fences every earlier producer of the writer, and aborts what it
left open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from headrace.connectors.client_cache import ClientCache
from headrace.connectors.kafka.client import TIMEOUT, client_settings, failure
from headrace.connectors.kafka.declaration import KafkaTopic
from headrace.connectors.kafka.writer_epoch import WriterEpoch, epoch_in_group, group_of
from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.core.columns.keys import partitions_of

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)
# Errors that another attempt does not fix.
_FINAL = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "_AUTHENTICATION",
          "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "INVALID_TOPIC_EXCEPTION", "MSG_SIZE_TOO_LARGE", "_INVALID_ARG")  # fmt: skip


class ProducerLost(Exception):
    """A producer failed or was fenced; a new one finds that the epoch is stored, or writes it."""


@dataclass(frozen=True)
class KeyedValues:
    """Keys and values in their order; a value of None removes its key."""

    keys: list[bytes | None]
    values: list[bytes | None]


class EpochProducer:
    """A producer of one writer. After any failure its state is unknown: it is discarded, never used again."""

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
            recorded = self._sure(lambda: epoch_in_group(self._asker, target.topic))
            if recorded.generation > writer.generation:
                raise writer.fenced()
            self._epoch = recorded.epoch
            if recorded.generation < writer.generation:
                # Durable at once, so that a writer of an earlier run finds it.
                self._sure(self._producer.begin_transaction)
                self._commit(self._epoch)
        self._partitions = self._count()

    def write(self, epoch: int, records: KeyedValues) -> bool:
        """Send the records of an epoch, and wait until they are durable; False if they are already stored."""
        if epoch <= self._epoch:
            return False
        failpoints.reach("kafka.send.before")
        if self._target.at_least_once:
            self._sure(lambda: self._send(records))
            if self._producer.flush(TIMEOUT) or self._refused:
                raise ProducerLost(str(self._refused or "brokers did not accept the records in time"))
            return True
        self._sure(self._producer.begin_transaction)
        self._sure(lambda: self._send(records))
        self._commit(epoch)
        self._epoch = epoch
        failpoints.reach("kafka.commit.after")
        return True

    def close(self) -> None:
        """Close without an abort: the next producer, or the transaction's time-out, aborts what is open."""
        self._producer.purge()
        if not self._target.at_least_once:
            self._asker.close()

    def _send(self, records: KeyedValues) -> None:
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
        place = WriterEpoch(self._writer.generation, epoch).place(self._target.topic)
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


def write(target: KafkaTopic, writer: Writer, epoch: int, records: KeyedValues) -> bool:
    """Write an epoch through this process's producer for a writer."""
    purpose = (target.servers, target.topic, writer)
    try:
        return producers.get(purpose, lambda: EpochProducer(target, writer)).write(epoch, records)
    except BaseException:
        producers.drop(purpose)
        raise


producers = ClientCache[EpochProducer](close=EpochProducer.close)
