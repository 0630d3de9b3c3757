"""A reader of Kafka, and the answers of its client."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError

import headrace as hr
from headrace.connectors.kafka.reading import RangeReading

SOURCE = hr.kafka("numbers", servers="nowhere:1")


@dataclass(frozen=True)
class Message:
    """What the client gives: a record, or with an error an event."""

    at: tuple[int, int]
    problem: KafkaError | None = None

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def error(self) -> KafkaError | None:
        return self.problem


def end(partition: int, offset: int) -> Message:
    return Message((partition, offset), KafkaError(KafkaError._PARTITION_EOF))


def records(partition: int, *offsets: int) -> list[Message]:
    return [Message((partition, offset)) for offset in offsets]


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_records_and_the_end_of_their_partition_may_come_in_one_answer(partitions: int) -> None:
    reading = RangeReading(SOURCE, dict.fromkeys(range(partitions), (0, 4)))
    # Offset 3 is that of a transaction's marker, which no client gives.
    answer = [message for partition in range(partitions) for message in (*records(partition, 0, 1, 2), end(partition, 4))]
    assert reading.taken(answer) == [message for message in answer if message.error() is None]
    assert not reading.open


@pytest.mark.parametrize("partitions", [1, 2])
def test_records_behind_the_range_show_that_it_is_read(partitions: int) -> None:
    reading = RangeReading(SOURCE, dict.fromkeys(range(partitions), (0, 4)))
    for partition in range(partitions):
        found = [*records(partition, 0, 1), *records(partition, 4, 5)]
        assert reading.taken(found) == records(partition, 0, 1)
    assert not reading.open


def test_the_end_of_a_partition_before_that_of_the_range_closes_nothing() -> None:
    reading = RangeReading(SOURCE, {0: (0, 4), 1: (0, 4)})
    reading.taken([*records(0, 0), end(0, 1), end(1, 0)])
    assert reading.open == {0, 1}


def test_a_position_that_retention_removed_is_an_error() -> None:
    reading = RangeReading(SOURCE, {0: (0, 4)})
    with pytest.raises(hr.ConnectorError, match="does not have offset 0"):
        reading.taken([Message((0, 0), KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))])


@pytest.mark.parametrize("name", ["UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "NOT_LEADER_FOR_PARTITION", "_TRANSPORT"])
def test_an_election_and_a_broker_that_is_away_are_waited_for(name: str) -> None:
    reading = RangeReading(SOURCE, {0: (0, 2)})
    assert reading.taken([Message((0, 0), KafkaError(getattr(KafkaError, name)))]) == []
    assert reading.taken(records(0, 0, 1)) == records(0, 0, 1)
    assert not reading.open
