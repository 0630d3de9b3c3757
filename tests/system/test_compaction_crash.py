"""A kill at every disk operation of a compaction or a removal leaves the old files or the new ones, and the next run ends the work."""

import os
import shutil
from datetime import timedelta

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log
from tests.support.compacting import HOUR, Compactable, held

KILLED = 9


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


def test_a_kill_at_any_disk_operation_of_a_compaction_loses_and_repeats_nothing(tmp_path):
    original = Compactable(tmp_path / "original")
    operations = every_crash(original.path, tmp_path / "copy", original.compact, original.check)
    assert operations > 20
    assert original.outcomes == {True, False}


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
