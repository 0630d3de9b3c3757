"""Headrace's side of log_vs_kafka, with the same methods as Kafka's."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from _records import Contents, Records, checksum, column_bytes, contents, read_stamp, stamped

from headrace.log import Log

# About the bytes of Kafka's largest batch times the five that its client has under way.
_ROWS_EACH = 50_000
_READ_ROWS = 50_000


class HeadraceSide:
    """A log in `directory`; lives in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._log = Log(directory)

    def create(self, topic: str, partitions: int) -> None:
        self._log.create_topic(topic, partitions=partitions, schema=None)

    def delete(self, topic: str) -> None:
        self._log.delete_topic(topic)

    def append(self, topic: str, records: Records, acks: str) -> float:
        """Seconds from the first table until the last is acknowledged (acks="all": on disk)."""
        tables = records.tables(_ROWS_EACH)
        with self._log.producer(acks=acks) as producer:
            started = time.perf_counter()
            for table, keys in tables:
                producer.send_table(topic, table, key=keys)
            return time.perf_counter() - started

    def append_in_order(self, topic: str, records: Records) -> None:
        self.append(topic, records, "all")

    def append_each(self, topic: str, records: Records, acks: str) -> float:
        """Record by record; they linger as Kafka's do."""
        values = records.value_list()
        with self._log.producer(acks=acks, linger="20ms") as producer:
            send = producer.send
            started = time.perf_counter()
            for value in values:
                send(topic, value)
            producer.flush()
            return time.perf_counter() - started

    def send_one_by_one(self, topic: str, seconds: float) -> float:
        value, sent = b"x" * 100, 0
        with self._log.producer(acks="all", linger="0s") as producer:
            started = time.perf_counter()
            while time.perf_counter() < started + seconds:
                producer.send(topic, value).result()
                sent += 1
            return sent / (time.perf_counter() - started)

    def count(self, topic: str, partitions: int) -> int:
        return int(self._log.read(topic).num_rows)

    def read(self, topic: str, partitions: int, count: int) -> tuple[float, int]:
        """By a consumer, batch after batch."""
        started, seen, total = time.perf_counter(), 0, 0
        with self._log.consumer([topic], start="beginning") as consumer:
            while seen < count:
                batch = consumer.poll(max_rows=_READ_ROWS, timeout="30s")
                assert batch is not None
                total += sum(map(checksum, column_bytes(batch["value"])))
                seen += batch.num_rows
            return time.perf_counter() - started, total

    def read_whole(self, topic: str, partitions: int, count: int) -> tuple[float, int]:
        """In one call."""
        started = time.perf_counter()
        table = self._log.read(topic)
        total = sum(map(checksum, column_bytes(table["value"])))
        return time.perf_counter() - started, total

    def contents(self, topic: str, partitions: int, count: int) -> Contents:
        table = self._log.read(topic).sort_by([("_partition", "ascending"), ("_offset", "ascending")])
        rows = np.concatenate(column_bytes(table["value"])).reshape(table.num_rows, -1)
        return contents(rows, table["_partition"].to_numpy())

    def open_tail(self, topic: str) -> None:
        self._tail = self._log.consumer([topic], start="beginning")
        self._tail.poll(max_rows=1, timeout="100ms")

    def tail(self, count: int) -> list[float]:
        """Only the values are taken, as with Kafka, whose messages make the rest when it is asked for."""
        delays: list[float] = []
        while len(delays) < count:
            batch = self._tail.poll(max_rows=_READ_ROWS, timeout="30s", columns=["value"])
            seen_at = time.monotonic_ns()
            assert batch is not None
            for value in batch["value"].to_pylist():
                number, due_at = read_stamp(value)
                assert number == len(delays)
                delays.append((seen_at - due_at) / 1e9)
        self._tail.close()
        return delays

    def send_at_rate(self, topic: str, rate: int, count: int, acks: str) -> None:
        """Open loop, as Kafka's."""
        with self._log.producer(acks=acks, linger="0s") as producer:
            first = time.monotonic_ns()
            for number in range(count):
                due_at = first + number * 1_000_000_000 // rate
                time.sleep(max(0, due_at - time.monotonic_ns()) / 1e9)
                producer.send(topic, stamped(number, due_at))
