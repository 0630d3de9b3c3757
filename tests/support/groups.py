"""Records for one partition, and what the members of a group get of them."""

import pyarrow as pa

from headrace.core.columns.keys import partitions_of
from headrace.log import Consumer, Log


def send(log: Log, topic: str, partition: int, count: int) -> None:
    """Send `count` records to one partition, each with its offset as the value."""
    partitions = log.topic(topic).partitions
    key = next(key for key in map(str, range(10_000)) if partitions_of(pa.array([key.encode()]), partitions)[0] == partition)
    end = log.describe(topic)["partitions"][partition]["end"]
    with log.producer() as producer:
        for offset in range(end, end + count):
            producer.send(topic, str(offset), key=key)


def poll(*consumers: Consumer) -> list[tuple[int, int]]:
    """What one poll of each consumer gives, as partitions and offsets."""
    tables = [consumer.poll(timeout="0s") for consumer in consumers]
    return [
        place
        for table in tables
        if table is not None
        for place in zip(table["_partition"].to_pylist(), table["_offset"].to_pylist(), strict=True)
    ]


def indexes(consumer: Consumer) -> list[int]:
    """The partitions that a consumer of one topic reads."""
    return [index for _, index in consumer.assignment]
