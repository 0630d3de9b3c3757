"""The cost of the log on disk does not grow with what is stored. Operations are counted, not seconds."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.log import Log
from headrace.log.files.cursor import Cursor, max_event_time
from tests.support.counting import CountingDisk

SMALL, LARGE = 10, 120
TOPICS = ("small", "large")
RECORDS = pa.table({"value": [b"x" * 600]})


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """A topic of a few segments and a topic of many, with one record each."""
    path = tmp_path_factory.mktemp("long")
    log = Log(path, disk=CountingDisk(durable=False))
    for name, segments in (("small", SMALL), ("large", LARGE)):
        log.create_topic(name, config={"segment.bytes": 1024})
        with log.producer(acks="1") as producer:
            for _ in range(segments):
                producer.send_table(name, RECORDS)
        assert log.describe(name)["partitions"][0]["segments"] == segments
    return path


def opened(path: Path, use, topic: str) -> Counter[str]:
    """What a process that has just started asks of the disk."""
    disk = CountingDisk()
    log = Log(path, disk=disk)
    log.transactions.settle()  # its topic is opened once a process, whatever topic is used
    log.topic(topic)  # its file has a checksum in decimal digits, one more or one less
    disk.taken()
    use(log, topic)
    return disk.taken()


@pytest.mark.parametrize("place", ["beginning", "end", 0, 1, 5, SMALL - 2])
def test_opening_a_topic_to_read_costs_the_same_however_many_segments_it_has(path, place):
    def read(log, name):
        assert log.consumer(name, start=place).poll(max_rows=1, timeout="0s") is not None or place == "end"

    small, large = (opened(path, read, name) for name in TOPICS)
    assert small == large
    assert large["open"] <= 8


def test_opening_a_topic_to_append_costs_the_same_however_many_segments_it_has(path):
    def append(log, name):
        log.append_epoch(name, RECORDS, writer="w", epoch=1)

    small, large = (opened(path, append, name) for name in TOPICS)
    assert small == large
    assert large["open"] <= 16  # with those of the segment that is full, and of the next


@pytest.mark.parametrize("acks", ["1", "all"])
def test_an_append_costs_the_same_however_much_is_stored(tmp_path, acks):
    disk = CountingDisk(durable=False)
    log = Log(tmp_path, disk=disk)
    log.create_topic("t")
    costs = []
    with log.producer(acks=acks) as producer:
        for number in range(600):
            disk.taken()
            producer.send_table("t", RECORDS)
            if number in (10, 200, 599):
                costs.append(disk.taken())
    assert costs[0] == costs[1] == costs[2]
    assert costs[0]["open"] == costs[0]["map"] == costs[0]["list"] == costs[0]["read"] == 0
    assert costs[0]["write"] == 2
    assert costs[0]["sync"] == (acks == "all")


def test_an_append_costs_the_same_however_many_writers_there_were(tmp_path):
    disk = CountingDisk(durable=False)
    log = Log(tmp_path, disk=disk)
    log.create_topic("t")
    costs = []
    for number in range(100):
        with log.producer(acks="1") as producer:
            producer.send_table("t", RECORDS)
            disk.taken()
            producer.send_table("t", RECORDS)
            if number in (3, 99):
                costs.append(disk.taken())
    assert costs[0] == costs[1]


def test_a_poll_at_the_end_costs_the_same_however_much_is_stored(tmp_path):
    disk = CountingDisk(durable=False)
    log = Log(tmp_path, disk=disk)
    log.create_topic("t")
    consumer, costs = log.consumer("t"), []
    with log.producer(acks="1") as producer:
        for number in range(300):
            producer.send_table("t", RECORDS)
            disk.taken()
            assert consumer.poll(timeout="0s").num_rows == 1
            if number in (10, 299):
                costs.append(disk.taken())
    assert costs[0]["open"] == costs[1]["open"] == 0
    assert costs[0]["bytes read"] == costs[1]["bytes read"]


def test_planning_and_reading_an_epoch_cost_the_same_however_much_is_stored(tmp_path):
    disk = CountingDisk(durable=False)
    log = Log(tmp_path, disk=disk)
    topic = log.create_topic("t", schema="n bigint, at timestamp", time="at")
    costs = []
    with log.producer(acks="1") as producer:
        for number in range(1, 3_001):
            producer.send_table("t", pa.table({"n": [number], "at": pa.array([number], pa.timestamp("us", "UTC"))}))
            if number in (20, 300, 3_000):
                partition = log.partition(topic, 0)
                disk.taken()
                assert max_event_time(partition, number - 10, number) == number
                assert sum(batch.num_rows for batch in Cursor(partition, number - 10).read(until=number)) == 10
                costs.append(disk.taken())
    assert costs[0]["open"] == costs[1]["open"] == costs[2]["open"]
    assert costs[0]["list"] == costs[2]["list"] == 0
    assert max(cost["read"] for cost in costs) <= 24
    assert max(cost["bytes read"] for cost in costs) <= 128 * (64 * 3 + 24)


def test_an_old_offset_is_found_by_a_search_in_the_index(tmp_path):
    disk = CountingDisk(durable=False)
    log = Log(tmp_path, disk=disk)
    topic = log.create_topic("t")
    with log.producer(acks="1") as producer:
        for _ in range(3_000):
            producer.send_table("t", RECORDS)
    disk.taken()
    for offset in (0, 1, 1_234, 2_999):
        assert Cursor(log.partition(topic, 0), offset).read(until=offset + 1)[0].num_rows == 1
        assert disk.taken()["bytes read"] <= 128 * (64 + 2 * (3_000).bit_length())


def test_a_reader_that_walks_over_segments_opens_each_once(path):
    disk = CountingDisk()
    log = Log(path, disk=disk)
    consumer = log.consumer("large")
    disk.taken()
    assert consumer.poll(max_rows=100, timeout="0s").num_rows == 100
    counts = disk.taken()
    assert counts["open"] <= 110
    assert counts["list"] <= 110


def test_a_time_is_found_by_a_search_among_segments_not_a_walk(path):
    disk = CountingDisk()
    log = Log(path, disk=disk)
    log.consumer("large")
    disk.taken()
    assert log.offsets_for_time("large", log.clock.now() + 1) == {0: None}
    counts = disk.taken()
    assert counts["list"] <= 3
    assert counts["open"] <= 2 * LARGE.bit_length()


def test_one_sync_serves_all_records_of_a_flush(tmp_path):
    disk = CountingDisk()
    log = Log(tmp_path, disk=disk)
    log.create_topic("t")
    with log.producer(acks="all", linger="1 hour") as producer:
        producer.send("t", b"x")
        producer.flush()
        disk.taken()
        for _ in range(1_000):
            producer.send("t", b"x")
        producer.flush()
        counts = disk.taken()
    assert (counts["sync"], counts["write"], counts["open"]) == (1, 2, 0)
