"""The records of a writer's epoch are stored once, however often they are appended: the base of exactly-once."""

import pyarrow as pa
import pytest

from headrace.core import failpoints
from headrace.log import Log
from headrace.log.errors import DiskFailed, Fenced
from tests.support.counting import CountingDisk


@pytest.fixture
def log(tmp_path, clock):
    log = Log(tmp_path / "log", clock=clock)
    log.create_topic("out", partitions=4, schema="user string, total int", key="user")
    return log


@pytest.fixture
def faults():
    """Switch failpoints on for one test."""
    yield failpoints.configure
    failpoints.configure(None)


def made_in(epoch: int, users: int = 20) -> pa.Table:
    return pa.table({"user": [f"user {number}" for number in range(users)], "total": pa.array([epoch] * users, pa.int32())})


def totals(log: Log) -> list[int]:
    return sorted(log.read("out")["total"].to_pylist())


def test_an_epoch_is_stored_once(log):
    first = log.append_epoch("out", made_in(1), writer="job", epoch=1)
    again = log.append_epoch("out", made_in(1), writer="job", epoch=1)
    assert not any(appended.repeated for appended in first)
    assert [(a.partition, a.base, a.next, True) for a in first] == [(a.partition, a.base, a.next, a.repeated) for a in again]
    assert totals(log) == [1] * 20


def test_epochs_only_go_up(log):
    for epoch in (1, 2, 3, 2, 1, 3):
        log.append_epoch("out", made_in(epoch), writer="job", epoch=epoch)
    assert totals(log) == [1] * 20 + [2] * 20 + [3] * 20


def test_records_go_where_their_keys_belong_or_where_they_are_sent(log):
    log.append_epoch("out", made_in(1), writer="job", epoch=1)
    by_key = {record["user"]: record["_partition"] for record in log.read("out").to_pylist()}
    with log.producer() as producer:
        producer.send_table("out", made_in(0))
    assert all(by_key[record["user"]] == record["_partition"] for record in log.read("out").to_pylist())
    log.append_epoch("out", made_in(2), writer="job", epoch=2, partition=3)
    assert {record["_partition"] for record in log.read("out").to_pylist() if record["total"] == 2} == {3}


def test_an_epoch_that_failed_half_way_is_completed_by_its_repetition(log, faults):
    log.append_epoch("out", made_in(1), writer="job", epoch=1)
    # Two writes a partition, the segment and its index: the third partition fails.
    faults("disk.write.before=error(EIO)@5")
    with pytest.raises(DiskFailed):
        log.append_epoch("out", made_in(2), writer="job", epoch=2)
    faults(None)
    assert 0 < totals(log).count(2) < 20
    appended = log.append_epoch("out", made_in(2), writer="job", epoch=2)
    assert {True, False} == {part.repeated for part in appended}
    assert totals(log) == [1] * 20 + [2] * 20


def test_each_writer_has_its_own_epochs(log):
    log.append_epoch("out", made_in(1), writer="one", epoch=7)
    log.append_epoch("out", made_in(2), writer="two", epoch=7)
    log.append_epoch("out", made_in(3), writer="two", epoch=7)
    assert totals(log) == [1] * 20 + [2] * 20


def test_the_last_epoch_of_a_writer_is_known_for_each_partition(log):
    assert log.last_epochs("out", "job") == {0: None, 1: None, 2: None, 3: None}
    log.append_epoch("out", made_in(4), writer="job", epoch=4)
    log.append_epoch("out", made_in(5), writer="job", epoch=5, partition=2)
    assert log.last_epochs("out", "job") == {0: 4, 1: 4, 2: 5, 3: 4}
    assert log.last_epochs("out", "other") == {0: None, 1: None, 2: None, 3: None}


def test_epochs_are_remembered_over_restarts_and_closed_segments(log):
    log.alter_topic("out", config={"segment.bytes": 1024})
    for epoch in range(1, 8):
        log.append_epoch("out", made_in(epoch), writer="job", epoch=epoch)
    assert min(partition["segments"] for partition in log.describe("out")["partitions"]) > 3
    again = Log(log.path)
    for epoch in range(1, 8):
        again.append_epoch("out", made_in(epoch), writer="job", epoch=epoch)
    assert totals(again) == sorted([*range(1, 8)] * 20)


def test_two_processes_repeating_one_epoch_store_it_once(log):
    logs = [log, Log(log.path), Log(log.path)]
    for epoch in range(1, 4):
        for each in logs:
            each.append_epoch("out", made_in(epoch), writer="job", epoch=epoch)
    assert totals(log) == [1] * 20 + [2] * 20 + [3] * 20


def test_a_newer_generation_of_a_writer_fences_the_older(log):
    log.append_epoch("out", made_in(1), writer="job", epoch=1, generation=1)
    log.append_epoch("out", made_in(2), writer="job", epoch=2, generation=2)
    with pytest.raises(Fenced, match="of generation 1 was replaced by generation 2"):
        log.append_epoch("out", made_in(3), writer="job", epoch=3, generation=1)
    assert totals(log) == [1] * 20 + [2] * 20


def test_an_epoch_without_records_stores_nothing(log):
    assert log.append_epoch("out", made_in(1, users=0), writer="job", epoch=1) == []
    assert log.last_epochs("out", "job") == {0: None, 1: None, 2: None, 3: None}


def test_an_epoch_is_durable_when_it_is_stored(tmp_path):
    disk = CountingDisk()
    log = Log(tmp_path, disk=disk)
    log.create_topic("out", schema="user string, total int")
    log.append_epoch("out", made_in(1), writer="job", epoch=1)
    disk.taken()
    log.append_epoch("out", made_in(2), writer="job", epoch=2)
    assert disk.taken()["sync"] == 1
    log.append_epoch("out", made_in(2), writer="job", epoch=2)
    assert disk.taken()["sync"] == 0
