"""A topic of a real broker as an output."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

import headrace as hr
from headrace.connectors.kafka import client, epoch_producer
from headrace.connectors.kafka.output import KafkaOutput
from headrace.connectors.kafka.reading import messages
from headrace.connectors.output import Changes, Writer
from headrace.core.columns.schema import schema
from headrace.ops.servers.kafka import KafkaServer
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import (
    a_record_that_is_refused_goes_to_the_dead_letters,
    expect,
    the_facts_of_a_key_keep_their_order,
)
from headrace.testing.conformance.subject import Letters, SubjectWriter, changes_of, made
from tests.support.processes import until
from tests.system.conftest import ENCRYPTED, PASSWORD


class KafkaSubject(Subject):
    poison = "long" * 300_000
    stall = "kafka.commit.before"
    history = True
    away = (hr.ConnectorError,)

    def __init__(self, server: KafkaServer, key: tuple[str, ...], **options: Any) -> None:
        self.key = key
        self.target = hr.kafka(f"out-{uuid.uuid4().hex[:8]}", servers=server.bootstrap, key="user", **options)
        self.output().prepare(2)

    def output(self) -> KafkaOutput:
        return self.target.output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        found = [(message.key(), message.value()) for message in self.messages()]
        if not self.key:
            return [json.loads(value) for _, value in found]
        latest = dict(found)
        return [json.loads(value) for value in latest.values() if value is not None]

    def parts(self) -> list[list[dict[str, Any]]]:
        """A table is observed by all its messages, which tell more than the latest do."""
        found: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
        # One client is for one thread.
        for message in self.messages("observer"):
            if message.value() is not None:
                found[message.partition()].append(json.loads(message.value()))
        return [found[0], found[1]]

    def messages(self, group: str = "reader") -> list[Any]:
        source = self.target.input(COLUMNS, None, group)
        spans = {partition: (0, end) for partition, end in source.end().items() if end}
        return [message for part in messages(self.target, group, spans) for message in part]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    epoch_producer.producers.forget()
    client.forget()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_topic_keeps_what_an_output_promises(case: Any, kafka: KafkaServer) -> None:
    case(KafkaSubject(kafka, KEY))


def test_facts_of_a_key_keep_their_order(kafka: KafkaServer) -> None:
    the_facts_of_a_key_keep_their_order(KafkaSubject(kafka, ()))


def test_keys_are_where_kafkas_own_clients_would_put_them_and_what_is_gone_is_a_tombstone(kafka: KafkaServer) -> None:
    subject = KafkaSubject(kafka, KEY)
    SubjectWriter(subject).write(1, made(1), gone=[{"user": "gone", "n": 1, "note": None}])
    expect(subject, made(1))
    found = {message.key(): (message.partition(), message.value()) for message in subject.messages()}
    assert found[b"gone"][1] is None
    own = hr.kafka(f"{subject.target.topic}-own", servers=kafka.bootstrap)
    own.output(COLUMNS, ()).prepare(2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2_random"})
    placed: dict[bytes, int] = {}
    for key in found:
        producer.produce(own.topic, b"", key, on_delivery=lambda _, message: placed.update({message.key(): message.partition()}))
    assert producer.flush(30) == 0
    assert {key: partition for key, (partition, _) in found.items()} == placed


def test_at_least_once_writes_without_transactions(kafka: KafkaServer) -> None:
    subject = KafkaSubject(kafka, (), at_least_once=True)
    hand = SubjectWriter(subject)
    hand.write(1, made(1))
    expect(subject, made(1))
    hand.write(1, made(1))
    expect(subject, [*made(1), *made(1)])


def test_records_may_be_written_as_they_are(kafka: KafkaServer) -> None:
    target = hr.kafka(f"raw-{uuid.uuid4().hex[:8]}", servers=kafka.bootstrap, format="bytes")
    columns = schema("line string")
    target.check(columns, ())
    output = target.output(columns, ())
    output.prepare(1)
    output.write(Writer("job", "raw"), 1, Changes(pl.DataFrame({"line": ["a", "b"]})), Letters())
    with pytest.raises(hr.SchemaError, match="writes one column"):
        target.check(COLUMNS, ())
    with pytest.raises(hr.SettingsError, match="written as JSON or as they are"):
        hr.kafka("t", servers="x:1", format=hr.avro({"type": "record", "name": "R", "fields": []})).check(COLUMNS, ())
    source = target.input(columns, None, "reader")
    until(lambda: source.end() == {0: 3})
    assert [row["line"] for batch in source.read(0, 0, 3) for row in batch.to_pylist()] == ["a", "b"]


def test_a_record_that_is_larger_than_settings_allow_is_a_dead_letter(kafka: KafkaServer) -> None:
    subject = KafkaSubject(kafka, KEY, settings={"message.max.bytes": "2000"})
    subject.poison = "x" * 2_000
    a_record_that_is_refused_goes_to_the_dead_letters(subject)


def test_an_epoch_is_written_and_read_over_tls_by_who_shows_a_certificate(kafka: KafkaServer) -> None:
    servers, shown = ENCRYPTED[kafka.bootstrap]
    subject = KafkaSubject(kafka, KEY)
    topic = subject.target.topic
    subject.target = hr.kafka(topic, servers=servers, key="user", settings=shown)
    hand = SubjectWriter(subject)
    assert hand.write(1, made(1))
    assert not hand.write(1, made(1))
    expect(subject, made(1))
    assert hand.output.last_epoch(hand.writer) == 1
    nameless = {name: shown[name] for name in ("security.protocol", "ssl.ca.location")}
    with pytest.raises(hr.ConnectorError):
        hr.kafka(topic, servers=servers, settings=nameless, patience="2s").input(COLUMNS, None, "reader").end()
    assert PASSWORD not in repr(subject.target)


def test_brokers_that_are_away_are_waited_for_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_producer, "TIMEOUT", 0.3)
    target = hr.kafka("t", servers="127.0.0.1:1", patience="100ms", settings={"sasl.password": "s3same"})
    with pytest.raises(hr.ConnectorError, match=r"'t' on 127\.0\.0\.1:1 failed") as stopped:
        target.output(COLUMNS, ()).write(Writer("job", "sink"), 1, changes_of(made(1)), Letters())
    assert "s3same" not in str(stopped.value)


def test_a_task_that_comes_back_to_the_process_it_had_before_goes_on(kafka: KafkaServer) -> None:
    subject = KafkaSubject(kafka, ())
    many = [{"user": f"u{number}", "n": number, "note": None} for number in range(20_000)]
    hand = SubjectWriter(subject)
    for epoch in (1, 3, 5):
        hand.write(epoch, many)
        elsewhere = epoch_producer.EpochProducer(subject.target, hand.writer)
        assert elsewhere.write(epoch + 1, epoch_producer.KeyedValues([b"u"], [b'{"user": "u", "n": 1, "note": null}']))
        elsewhere.close()
    # A commit is seen a moment after it is acknowledged.
    until(lambda: len(subject.rows()) >= 3 * (len(many) + 1))
    assert len(subject.rows()) == 3 * (len(many) + 1)
