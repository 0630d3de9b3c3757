"""Kafka's side of log_vs_kafka: each method is the fastest way that its Python client was found to have."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _records import Contents, Records, checksum, contents, read_stamp, stamped
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

# One large in-memory queue and no callback for a success: the sender never waits and Python is never called back.
_BULK = {
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 5_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
    "delivery.report.only.error": True,
    "partitioner": "murmur2_random",
}
# Measured: prefetching far ahead and taking 1,000 at a time reads 1.2 million records/s; larger requests and fetches are slower.
_PREFETCH = {"queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 1_000_000}
_AT_ONCE = 1_000


class KafkaSide:
    """A client of the broker at `bootstrap`; lives in a process of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._servers: dict[str, Any] = {"bootstrap.servers": bootstrap}
        self._admin = AdminClient(self._servers)
        self._tail: Consumer | None = None

    def create(self, topic: str, partitions: int) -> None:
        for done in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(30)
        self._wait_for_leaders(topic, partitions)

    def delete(self, topic: str) -> None:
        for done in self._admin.delete_topics([topic]).values():
            done.result(30)

    def append(self, topic: str, records: Records, acks: str, **settings: Any) -> float:
        """Seconds from the first `produce` until the last record is acknowledged."""
        values, keys = records.value_list(), records.key_list() if records.keyed else None
        producer = self._producer(topic, acks=acks, **_BULK, **settings)
        produce = producer.produce
        started = time.perf_counter()
        if keys is None:
            for value in values:
                produce(topic, value)
        else:
            for value, key in zip(values, keys, strict=True):
                produce(topic, value, key)
        _flush(producer)
        return time.perf_counter() - started

    def append_batches(self, topic: str, records: Records, acks: str) -> float:
        """The same through the client's call for many records, which is not always the faster one."""
        messages = [{"value": value} for value in records.value_list()]
        batches = [messages[start : start + 10_000] for start in range(0, len(messages), 10_000)]
        producer = self._producer(topic, acks=acks, **_BULK)
        started = time.perf_counter()
        for batch in batches:
            producer.produce_batch(topic, batch)
        _flush(producer)
        return time.perf_counter() - started

    append_each = append

    def append_in_order(self, topic: str, records: Records) -> None:
        """Idempotent, which a fifth to a third of the speed pays for: without it, a retried batch comes after its successors."""
        self.append(topic, records, "all", **{"enable.idempotence": True})

    def send_one_by_one(self, topic: str, seconds: float) -> float:
        """Sends per second when each is flushed, and so acknowledged, before the next."""
        producer = self._producer(topic, acks="all", **{"linger.ms": 0, "socket.nagle.disable": True})
        value, sent = b"x" * 100, 0
        started = time.perf_counter()
        while time.perf_counter() < started + seconds:
            producer.produce(topic, value)
            _flush(producer)
            sent += 1
        return sent / (time.perf_counter() - started)

    def count(self, topic: str, partitions: int) -> int:
        consumer = self._consumer(topic)
        bounds = [consumer.get_watermark_offsets(TopicPartition(topic, number), 30) for number in range(partitions)]
        consumer.close()
        return sum(high - low for low, high in bounds)

    def read(self, topic: str, partitions: int, count: int) -> tuple[float, int]:
        """Seconds to read everything and touch each byte, and the checksum of it."""
        consumer = self._consumer(topic, **_PREFETCH)
        started, seen, total = time.perf_counter(), 0, 0
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        while seen < count:
            messages = consumer.consume(min(_AT_ONCE, count - seen), 30)
            total += checksum(_values(messages))
            seen += len(messages)
        seconds = time.perf_counter() - started
        consumer.close()
        return seconds, total

    def contents(self, topic: str, partitions: int, count: int) -> Contents:
        consumer = self._consumer(topic, **_PREFETCH)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        messages: list[Any] = []
        while len(messages) < count:
            messages += consumer.consume(_AT_ONCE, 30)
        consumer.close()
        return contents(_values(messages).reshape(len(messages), -1), np.array([message.partition() for message in messages]))

    def open_tail(self, topic: str) -> None:
        self._tail = self._consumer(topic)
        self._tail.assign([TopicPartition(topic, 0, 0)])
        self._tail.poll(0.5)

    def tail(self, count: int) -> list[float]:
        """Seconds from when each record was due until it was seen here, in the order sent."""
        assert self._tail is not None
        delays: list[float] = []
        while len(delays) < count:
            message: Any = self._tail.poll(30)
            seen_at = time.monotonic_ns()
            number, due_at = read_stamp(message.value())
            assert number == len(delays)
            delays.append((seen_at - due_at) / 1e9)
        self._tail.close()
        return delays

    def send_at_rate(self, topic: str, rate: int, count: int, acks: str) -> None:
        """Open loop: a record goes out when it is due, whatever became of those before it."""
        producer = self._producer(topic, acks=acks, **{"linger.ms": 0, "socket.nagle.disable": True})
        first = time.monotonic_ns()
        for number in range(count):
            due_at = first + number * 1_000_000_000 // rate
            time.sleep(max(0, due_at - time.monotonic_ns()) / 1e9)
            producer.produce(topic, stamped(number, due_at))
            producer.poll(0)
        _flush(producer)

    def _wait_for_leaders(self, topic: str, partitions: int) -> None:
        """A producer that meets a topic before its leaders are ready would lose time with retries."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.count(topic, partitions)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _producer(self, topic: str, **settings: Any) -> Producer:
        producer = Producer({**self._servers, **settings})
        producer.list_topics(topic, 30)  # connects, so that a measure does not
        return producer

    def _consumer(self, topic: str, **settings: Any) -> Consumer:
        consumer = Consumer({**self._servers, "group.id": "bench", "enable.auto.commit": False, **settings})
        consumer.list_topics(topic, 30)
        return consumer


def _values(messages: list[Any]) -> np.ndarray:
    return np.frombuffer(b"".join([message.value() for message in messages]), np.uint8)


def _flush(producer: Producer) -> None:
    if left := producer.flush(120):
        raise TimeoutError(f"Kafka has not acknowledged {left} records after two minutes")
