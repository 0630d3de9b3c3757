"""Maintenance happens by itself when a segment is closed, while records are appended, and says when it could not."""

import gc
import logging
import threading

import pytest

from headrace.core import failpoints
from headrace.log import Log
from headrace.log.errors import DiskFailed, UnknownTopic
from headrace.log.upkeep.maintenance import maintenance_lock


def send(log, topic, count, key=None, size=200):
    with log.producer() as producer:
        for number in range(count):
            producer.send(topic, bytes(size), key=key and key(number))
            producer.flush()


def size(log, topic):
    return log.describe(topic)["partitions"][0]["bytes"]


def test_a_topic_with_retention_stays_bounded_with_no_server(log):
    log.create_topic("a", config={"retention.bytes": 20_000, "segment.bytes": 4_000})
    for _ in range(4):
        send(log, "a", 70)
        log.maintenance.wait()
        assert size(log, "a") < 30_000
    assert log.describe("a")["partitions"][0]["end"] == 280


def test_a_compacted_topic_stays_bounded_with_no_server(log):
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 4_000})
    for _ in range(4):
        send(log, "a", 60, key=lambda number: b"k%d" % (number % 4))
        log.maintenance.wait()
        assert size(log, "a") < 20_000
    assert len(set(log.read("a")["_key"].to_pylist())) == 4


def test_compaction_waits_until_half_is_new(log):
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 4_000})
    send(log, "a", 100, key=lambda number: b"k%d" % number)
    log.maintenance.wait()
    [report] = log.maintain("a", force=True)
    partition = log.partition(log.topic("a"), 0)
    before = log.read("a").num_rows
    send(log, "a", 5, key=lambda _: b"k0")
    partition.roll()
    log.maintenance.wait()
    assert log.read("a").num_rows == before + 5
    assert log.maintain("a")[0].compacted is None
    [report] = log.maintain("a", force=True)
    assert report.compacted.records_removed >= 5


def test_an_append_does_not_wait_for_maintenance(log):
    log.create_topic("a", config={"retention.bytes": 1_000, "segment.bytes": 1_024})
    partition = log.partition(log.topic("a"), 0)
    with maintenance_lock(partition):  # as if another process were compacting for an hour
        send(log, "a", 20)
        assert log.read("a").num_rows == 20
    log.maintenance.wait()
    assert log.read("a").num_rows < 20


def test_all_topics_are_looked_after_and_each_is_reported(log):
    log.create_topic("a", partitions=2)
    log.create_topic("b", config={"cleanup.policy": "compact"})
    send(log, "b", 2, key=lambda _: b"k")
    reports = {(report.topic, report.partition): report for report in log.maintain(force=True)}
    assert {("a", 0), ("a", 1), ("b", 0)} <= set(reports)
    assert reports["a", 0].compacted is None
    assert reports["b", 0].compacted is not None


def test_an_unknown_topic_is_refused(log):
    with pytest.raises(UnknownTopic):
        log.maintain("nowhere")


def test_a_failure_in_the_background_is_logged_counted_and_tried_again(log, caplog):
    log.create_topic("a", config={"retention.bytes": 1_000, "segment.bytes": 1_024})
    partition = log.partition(log.topic("a"), 0)
    with maintenance_lock(partition):
        send(log, "a", 20)
        failpoints.configure("disk.remove.before=error(EIO)")
    with caplog.at_level(logging.WARNING):
        log.maintenance.wait()
        failpoints.configure(None)
    failures = log.maintenance.failures
    assert failures > 0
    assert "maintenance of partition 0 of topic 'a' failed" in caplog.text
    send(log, "a", 20)
    log.maintenance.wait()
    assert log.maintenance.failures == failures
    assert size(log, "a") < 4_000


def test_a_failure_on_request_is_in_the_report(log):
    log.create_topic("a", config={"cleanup.policy": "compact"})
    partition = log.partition(log.topic("a"), 0)
    partition.on_roll = None
    send(log, "a", 3, key=lambda _: b"k")
    partition.roll()
    failpoints.configure("disk.write.before=error(ENOSPC)")
    try:
        [report] = log.maintain("a", force=True)
    finally:
        failpoints.configure(None)
    assert isinstance(report.error, DiskFailed)
    assert log.read("a").num_rows == 3
    [report] = log.maintain("a", force=True)
    assert report.compacted.records_removed == 2


def test_a_topic_deleted_meanwhile_is_no_failure(log):
    log.create_topic("a", config={"retention.bytes": 1_000, "segment.bytes": 1_024})
    partition = log.partition(log.topic("a"), 0)
    with maintenance_lock(partition):
        send(log, "a", 20)
        log.delete_topic("a")
    log.maintenance.wait()
    assert log.maintenance.failures == 0


def test_two_processes_do_not_compact_one_partition_at_once(tmp_path, clock, log):
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 2_000})
    other = Log(tmp_path / "log", clock=clock)
    send(log, "a", 50, key=lambda number: b"k%d" % (number % 3))
    threads = [threading.Thread(target=each.maintain, args=("a",), kwargs={"force": True}) for each in (log, other, log, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.maintenance.wait()
    keys = log.read("a")["_key"].to_pylist()
    assert set(keys) == {b"k0", b"k1", b"k2"}


def test_no_thread_and_no_file_stays_behind(log):
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 2_000})
    send(log, "a", 100, key=lambda number: b"k%d" % (number % 3))
    log.maintenance.wait()
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "headrace-maintenance"]
    assert not [path for path in (log.path / "topics/a/0").iterdir() if path.name.startswith(".") or path.name == "merging"]
