"""A kill at every disk operation of a consumer: what is acknowledged stays done, the rest comes again, dead letters come once."""

import os
import shutil
from collections import Counter
from datetime import timedelta

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log

MESSAGES = 4


def worked(path, clock, report):
    """Receive all; acknowledge the even ones, refuse number 1 until it is a dead letter, leave the others."""
    queue = Log(path, clock=clock).queue("jobs", name="workers", max_deliveries=2)
    for _ in range(2):
        for message in queue.receive(max=4, wait="0s"):
            number = int(message.value)
            if number % 2 == 0:
                message.ack()
                os.write(report, b"%d" % number)
            elif number == 1:
                message.nack()


def in_child(work, failpoint):
    """Run `work` in a forked child with a failpoint; what it reported, and whether it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            failpoints.configure(failpoint)
            work(writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == 9, status
    return [int(digit) for digit in report], status != 0


def test_a_kill_at_any_disk_operation_of_a_consumer_loses_and_repeats_nothing(tmp_path):
    clock = ManualClock()
    original = Log(tmp_path / "original", clock=clock)
    original.create_topic("jobs")
    with original.producer() as producer:
        for number in range(MESSAGES):
            producer.send("jobs", b"%d" % number)
    original.queue("jobs", name="workers")
    path, operations, killed = tmp_path / "copy", 0, True
    while killed:
        operations += 1
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original.path, path)
        acknowledged, killed = in_child(lambda report: worked(path, clock, report), f"*=kill@{operations}")
        clock.advance(timedelta(minutes=1))
        check(path, clock, acknowledged)
    assert acknowledged == [0, 2]
    assert operations > 40


def check(path, clock, acknowledged):
    log = Log(path, clock=clock)
    queue = log.queue("jobs", name="workers", max_deliveries=2)
    seen: Counter[int] = Counter()
    for _ in range(3):
        while messages := queue.receive(max=4, wait="0s"):
            seen.update(int(message.value) for message in messages)
        clock.advance(timedelta(minutes=1))
    dead = Counter(map(int, log.read("jobs.dead")["value"].to_pylist()))
    assert not set(acknowledged) & (set(seen) | set(dead))
    # At most one acknowledgement was under way: it took effect or not, but its report never came.
    gone = set(range(MESSAGES)) - set(dead)
    assert set(acknowledged) <= gone
    assert len(gone) <= len(acknowledged) + 1
    assert max(dead.values()) == 1
    depth = queue.depth()
    assert (depth.ready, depth.in_flight, depth.dead, depth.expired) == (0, 0, len(dead), 0)
