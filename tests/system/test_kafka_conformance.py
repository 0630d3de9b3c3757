"""A topic of a real broker, as an input that is certified."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import headrace as hr
from headrace.connectors.kafka import client
from headrace.connectors.kafka.input import KafkaInput
from headrace.ops.servers.kafka import KafkaServer
from headrace.testing.conformance.inputs import SOURCE_CASES, SOURCE_COLUMNS, SourceSubject
from headrace.testing.conformance.source_subject import Row
from tests.support.processes import until

PATIENCE = 30.0


@dataclass(frozen=True)
class KafkaTransaction:
    producer: Producer

    def commit(self) -> None:
        self.producer.commit_transaction(PATIENCE)

    def abort(self) -> None:
        self.producer.abort_transaction(PATIENCE)


class KafkaSource(SourceSubject):
    inapplicable: ClassVar[dict[str, str]] = {
        "a_compacted_range_gives_a_second_attempt_the_same_records": "the broker decides when it compacts; docs/kafka.md says what to set",
    }

    def __init__(self, server: KafkaServer) -> None:
        self._servers, self._name = server.bootstrap, f"certified-{uuid.uuid4().hex[:8]}"
        self._admin = AdminClient({"bootstrap.servers": self._servers})
        self._create()

    def input(self) -> KafkaInput:
        return hr.kafka(self._name, servers=self._servers).input(SOURCE_COLUMNS, "at", self._name)

    def send(self, rows: Sequence[Row], partition: int = 0) -> None:
        self._send(Producer({"bootstrap.servers": self._servers}), rows, partition)

    def begin(self, rows: Sequence[Row]) -> KafkaTransaction:
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": self._name})
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        self._send(producer, rows, 0)
        return KafkaTransaction(producer)

    def add_partition(self) -> None:
        more = self._partitions() + 1
        self._admin.create_partitions([NewPartitions(self._name, more)])[self._name].result(PATIENCE)
        # A record for a partition that clients are not told of yet is not sent.
        until(lambda: self._partitions() == more)

    def expire(self, before: int) -> None:
        place = TopicPartition(self._name, 0, before)
        self._admin.delete_records([place])[place].result(PATIENCE)

    def make_anew(self) -> None:
        self._admin.delete_topics([self._name])[self._name].result(PATIENCE)
        until(lambda: self._partitions() == 0)
        self._create()

    def _send(self, producer: Producer, rows: Sequence[Row], partition: int) -> None:
        failed: list[Any] = []
        for row in rows:
            value = json.dumps({**row, "at": row["at"].isoformat()}).encode()
            producer.produce(self._name, value, partition=partition, on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(PATIENCE) == 0
        assert not any(failed)

    def _create(self) -> None:
        self._admin.create_topics([NewTopic(self._name, 1, 1)])[self._name].result(PATIENCE)
        until(lambda: self._partitions() == 1)

    def _partitions(self) -> int:
        """How many partitions clients are told of; 0 if the topic is not there."""
        topics = self._admin.list_topics(timeout=PATIENCE).topics
        return len(topics[self._name].partitions) if self._name in topics else 0


@pytest.fixture
def subject(kafka: KafkaServer) -> Iterator[KafkaSource]:
    yield KafkaSource(kafka)
    client.forget()


@pytest.mark.parametrize("case", SOURCE_CASES, ids=lambda case: case.__name__)
def test_a_topic_of_kafka_keeps_what_an_input_promises(case: Any, subject: KafkaSource) -> None:
    if reason := subject.inapplicable.get(case.__name__):
        pytest.skip(reason)
    case(subject)


def test_the_page_of_guarantees_says_which_cases_do_not_apply_to_kafka() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text(encoding="utf-8").splitlines()
    for case in SOURCE_CASES:
        [row] = [line for line in page if line.startswith(f"| {case.__name__.replace('_', ' ')} |")]
        reason = KafkaSource.inapplicable.get(case.__name__)
        assert row.split("|")[3].strip() == ("yes" if reason is None else f"does not apply: {reason}")
