"""The fraud app from Kafka to Kafka: what is planted is alerted once, and what cannot be read or judged is a dead letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.cli.demos.fraud.cards import Cards
from headrace.cli.demos.fraud.history import history
from headrace.ops.servers.kafka import KafkaServer
from tests.support.fraud import NOON, alerted, fraud_app, payment, planted

PREFIX = "fraud-"
BAD = {
    "the amount is no number above zero": payment(1, -5.0),
    "the payment has no place": payment(2, lat=None),
    "the card is not known": payment(3, card="nobody"),
}


def text(row: dict[str, Any]) -> bytes:
    return json.dumps({name: value.isoformat() if name == "paid_at" else value for name, value in row.items()}).encode()


def alerts_in(servers: str, count: int) -> list[dict[str, Any]]:
    """All committed alerts; at least `count` are waited for."""
    settings = {"bootstrap.servers": servers, "group.id": "test", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(f"{PREFIX}alerts", partition, 0) for partition in range(2)])
    found, ended = [], set[int]()
    while len(found) < count or len(ended) < 2:
        message = consumer.poll(60)
        assert message is not None, f"{len(found)} of {count} alerts"
        if message.error() is not None:
            ended.add(message.partition())
        else:
            found.append(json.loads(message.value()))
    consumer.close()
    return found


@pytest.mark.usefixtures("spark")
def test_payments_from_kafka_are_judged_into_kafka_and_bad_ones_are_dead_letters(kafka: KafkaServer, tmp_path: Path) -> None:
    cards = Cards(2_400, 6)
    made = history(cards, 6, begin=NOON, seconds=120, rate=20, per_case=120)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for topic, partitions in (("payments", 2), ("cards", 1), ("alerts", 2)):
        admin.create_topics([NewTopic(f"{PREFIX}{topic}", partitions, 1)])[f"{PREFIX}{topic}"].result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for row in cards.profiles().to_pylist():
        producer.produce(f"{PREFIX}cards", json.dumps(row).encode(), key=row["card"].encode())
    for value in (b"{ no JSON", *map(text, BAD.values())):
        producer.produce(f"{PREFIX}payments", value, partition=0)
    for row in made.payments.to_pylist():
        producer.produce(f"{PREFIX}payments", text(row), key=row["card"].encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    app = fraud_app(tmp_path, kafka=kafka.bootstrap, prefix=PREFIX)
    app.run(until="end")
    assert alerted(alerts_in(kafka.bootstrap, len(made.cases))) == planted(made.cases)
    reasons = [letter["reason"] for letter in app.log.read("payments.dead").to_pylist()]
    assert sorted(reason for reason in reasons if "JSON" not in reason) == sorted(BAD)
    assert len(reasons) == len(BAD) + 1
    assert sum(app.read("suspicious_cards")["alerts"].to_pylist()) == len(made.cases)
