"""A key lands in the partition where Kafka's own client puts it."""

import random

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.core.columns.keys import partitions_of
from headrace.ops.servers.kafka import KafkaServer


def placed_by_kafka(kafka: KafkaServer, keys: list[bytes], partitions: int) -> list[int]:
    settings = {"bootstrap.servers": kafka.bootstrap}
    topic, admin = f"partitioner-{partitions}", AdminClient(settings)
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(60)
    placed: dict[bytes, int] = {}
    producer = Producer({**settings, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(topic, key=key, on_delivery=lambda error, message: placed.update({message.key(): message.partition()}))
    assert producer.flush(60) == 0
    return [placed[key] for key in keys]


@pytest.mark.parametrize("partitions", [1, 7, 32])
def test_keys_land_where_kafkas_client_puts_them(kafka: KafkaServer, partitions: int) -> None:
    draw = random.Random(1)
    keys = [draw.randbytes(length) for length in range(1, 80) for _ in range(5)] + ["ключ".encode(), "鍵".encode(), b"\0"]
    assert placed_by_kafka(kafka, keys, partitions) == partitions_of(pa.array(keys, pa.binary()), partitions).tolist()
