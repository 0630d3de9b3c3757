"""A kill at every disk operation of a compaction or a removal leaves the old files or the new ones, and the next run ends the work."""

import os
import shutil
from datetime import timedelta

import pytest

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log

KILLED = 9
HOUR = 3_600_000


def in_child(work, failpoint):
    """Run `work` in a forked child with a failpoint; True if it was killed there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            failpoints.configure(failpoint)
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == KILLED, status
    return status != 0


def every_crash(original, path, work, check):
    """Kill `work` at its first disk operation, on a fresh copy at its second, and so on until it ends; how many there were."""
    count = 0
    while True:
        count += 1
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original, path)
        killed = in_child(lambda: work(path), f"*=kill@{count}")
        check(path)
        if not killed:
            return count


def held(log, topic="a", **options):
    table = log.read(topic, columns=["_offset", "_key", "value", "_tombstone"], **options)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def original(tmp_path):
    """Closed segments with repeated keys, a tombstone, an aborted transaction, one segment compacted before, and an open one."""
    clock = ManualClock()
    log = Log(tmp_path / "original", clock=clock)
    log.create_topic("a", config={"cleanup.policy": "compact", "min.compaction.lag.ms": HOUR, "delete.retention.ms": HOUR})
    number = 0

    def segment(*keys, **settings):
        nonlocal number
        with log.producer(**settings) as producer:
            if settings:
                producer.begin_transaction()
            for key in keys:
                producer.send("a", None if key == b"gone" else b"%d" % number, key=key)
                number += 1
            producer.flush()
        log.partition(log.topic("a"), 0).roll()
        log.maintenance.wait()

    segment(b"a", b"b", b"gone", b"a")
    clock.advance(timedelta(hours=2))
    log.maintain("a", force=True)
    segment(b"a", b"c")
    segment(b"b", b"d", transactional_id="aborted")
    segment(b"c", b"e", b"gone", b"e")
    with log.producer() as producer:
        producer.send("a", b"last", key=b"a")
    clock.advance(timedelta(hours=2))
    return tmp_path / "original", clock


def test_a_kill_at_any_disk_operation_of_a_compaction_loses_and_repeats_nothing(original, tmp_path):
    source, clock = original
    before = held(Log(source, clock=clock))
    latest = {row[1]: row for row in before if row[0] < 12}
    finished = sorted({*latest.values(), before[-1]})
    outcomes = set()

    def compact(path):
        [report] = Log(path, clock=clock).maintain("a", force=True)
        assert report.error is None
        assert report.compacted.segments_before == 4

    def check(path):
        log = Log(path, clock=clock)
        found = held(log)
        assert found == sorted(set(found))
        assert set(finished) <= set(found) <= set(before)
        outcomes.add(found == finished)
        # Each reader in the middle sees the rest, whichever files a crash left.
        for start in (1, 4, 6, 9, 12):
            rest = held(log, start=start)
            assert [row for row in rest if row in finished] == [row for row in finished if row[0] >= start]
        with log.producer(linger="0s") as producer:
            assert producer.send("a", b"next", key=b"n").result().offset == before[-1][0] + 1
        [report] = log.maintain("a", force=True)
        assert report.error is None
        assert held(log)[:-1] == finished
        assert not [*(path / "topics/a/0").glob(".aside*"), *(path / "topics/a/0").glob("merging")]
        assert len([*(path / "topics/a/0").glob("*.segment")]) == 2

    operations = every_crash(source, tmp_path / "copy", compact, check)
    assert operations > 20
    assert outcomes == {True, False}


def test_a_kill_at_any_disk_operation_of_retention_removes_from_the_front_only(tmp_path):
    clock = ManualClock()
    source = Log(tmp_path / "original", clock=clock)
    source.create_topic("a", config={"retention.ms": HOUR})
    for number in range(5):
        with source.producer() as producer:
            producer.send("a", b"%d" % number)
        source.partition(source.topic("a"), 0).roll()
    source.maintenance.wait()
    clock.advance(timedelta(hours=2))

    def check(path):
        log = Log(path, clock=clock)
        found = [row[0] for row in held(log)]
        assert found == list(range(5))[len(range(5)) - len(found) :]
        log.maintain("a")
        assert held(log) == []
        with log.producer(linger="0s") as producer:
            assert producer.send("a", b"next").result().offset == 5
        assert len([*(path / "topics/a/0").glob("*.segment")]) == 1

    operations = every_crash(source.path, tmp_path / "copy", lambda path: Log(path, clock=clock).maintain("a"), check)
    assert operations > 20
