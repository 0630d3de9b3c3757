"""The moment at which records are sent: after their linger, when their batch is full, or when they are asked for."""

import threading
from datetime import timedelta

import pyarrow as pa
import pytest

from headrace.core.errors import LogError
from headrace.core.files.disk import PosixDisk, PosixFile
from headrace.log import Log
from tests.support.processes import PATIENCE


class SlowDisk(PosixDisk):
    """A disk that makes nothing durable until it may go on, or until as many files wait as are to be synced at once."""

    def __init__(self) -> None:
        self.syncing, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.at_once: threading.Barrier | None = None

    def open(self, path, *, create=False):
        return SlowFile(path, self, create=create)


class SlowFile(PosixFile):
    def __init__(self, path, disk, *, create):
        super().__init__(path, create=create)
        self._disk = disk

    def sync(self) -> None:
        if not self._disk.go_on.is_set():
            self._disk.syncing.set()
        assert self._disk.go_on.wait(PATIENCE)
        if self._disk.at_once is not None:
            self._disk.at_once.wait(PATIENCE)
        super().sync()


def values(log: Log) -> list[bytes]:
    return log.read("a", columns=["value"])["value"].to_pylist()


def batches(log: Log) -> int:
    return log.read("a")["_offset"].num_chunks


def test_records_that_linger_are_stored_as_one_batch(log):
    log.create_topic("a")
    with log.producer(linger="1 hour") as producer:
        for number in range(100):
            producer.send("a", b"%d" % number)
        assert values(log) == []
    assert values(log) == [b"%d" % number for number in range(100)]
    assert batches(log) == 1


def test_a_record_is_sent_when_its_linger_has_passed(log, clock):
    log.create_topic("a")
    with log.producer(linger="20ms") as producer:
        delivery = producer.send("a", b"x")
        assert not delivery.done()
        with pytest.raises(LogError, match="no answer after"):
            delivery.result("60ms")
        clock.advance(timedelta(milliseconds=20))
        assert delivery.result("30s").offset == 0
    assert values(log) == [b"x"]


def test_without_linger_each_record_is_sent_at_once(log):
    log.create_topic("a")
    with log.producer(linger="0s") as producer:
        for number in range(3):
            assert producer.send("a", b"%d" % number).result("30s") == (0, number)
    assert batches(log) == 3


def test_without_linger_what_comes_while_a_record_is_stored_is_stored_together(tmp_path):
    disk = SlowDisk()
    log = Log(tmp_path, disk=disk)
    log.create_topic("a")
    disk.go_on.clear()
    with log.producer(linger="0s") as producer:
        first = producer.send("a", b"first")
        assert disk.syncing.wait(PATIENCE)
        others = [producer.send("a", b"%d" % number) for number in range(100)]
        assert not first.done()
        disk.go_on.set()
        assert [other.result("30s").offset for other in others] == list(range(1, 101))
    assert batches(log) == 2


def test_asking_for_a_record_that_lingers_sends_it_with_its_batch(log):
    log.create_topic("a")
    with log.producer(linger="1 hour") as producer:
        deliveries = [producer.send("a", b"%d" % number) for number in range(3)]
        assert deliveries[1].result() == (0, 1)
        assert all(delivery.done() for delivery in deliveries)
        assert deliveries[0].result() == (0, 0)
    assert batches(log) == 1


def test_without_a_limit_records_wait_until_they_are_asked_for_and_no_thread_sends(log):
    log.create_topic("a")
    before = threading.active_count()
    with log.producer(linger=None, batch_bytes=10_000) as producer:
        deliveries = [producer.send("a", b"x" * 936) for _ in range(25)]
        assert [delivery.done() for delivery in deliveries] == [True] * 20 + [False] * 5
        assert threading.active_count() == before
    assert batches(log) == 3


def test_a_full_batch_does_not_wait_for_its_linger(log):
    log.create_topic("a")
    with log.producer(linger="1 hour", batch_bytes=10_000) as producer:
        deliveries = [producer.send("a", b"x" * 936) for _ in range(10)]
        assert [delivery.result("30s").offset for delivery in deliveries] == list(range(10))
        assert not producer.send("a", b"x").done()
    assert batches(log) == 2


@pytest.mark.parametrize("one_by_one", [True, False])
def test_records_for_several_partitions_wait_for_the_disk_together(tmp_path, one_by_one):
    disk = SlowDisk()
    log = Log(tmp_path, disk=disk)
    log.create_topic("a", partitions=4)
    keys = [b"%d" % number for number in range(40)]
    with log.producer(linger="1 hour") as producer:
        disk.at_once = threading.Barrier(4)
        if one_by_one:
            deliveries = [producer.send("a", key, key=key) for key in keys]
            producer.flush()
            assert {delivery.result().partition for delivery in deliveries} == {0, 1, 2, 3}
        else:
            assert len(producer.send_table("a", pa.table({"value": keys}), key=pa.array(keys))) == 4
        disk.at_once = None
    assert sorted(values(log)) == sorted(keys)
