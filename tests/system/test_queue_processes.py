"""Consumers of one queue in processes of their own, killed while they hold messages."""

import random
import signal
import subprocess
import sys

import pytest

from headrace.log import Log
from tests.support.processes import until

# Prints what it received before it goes on, and what it acknowledged after. With "hold" it never acknowledges.
WORKER = """
import sys, time
from headrace.log import Log
queue = Log(sys.argv[1]).queue("jobs", name="workers", visibility_timeout="1s", max_deliveries=1_000)
while True:
    began = time.monotonic_ns()
    for message in queue.receive(max=3, wait="100ms"):
        print("received", message.value.decode(), message.deliveries, began, flush=True)
        if sys.argv[2] == "work":
            message.ack()
            print("done", message.value.decode(), message.deliveries, time.monotonic_ns(), flush=True)
"""


class Worker:
    """A consumer process; what it said is in a file, whole lines of which count."""

    def __init__(self, log, what, output):
        self.output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen([sys.executable, "-c", WORKER, str(log.path), what], stdout=file)

    def said(self):
        lines = self.output.read_bytes().split(b"\n")[:-1]
        return [(what.decode(), int(number), int(count), int(at)) for what, number, count, at in (line.split() for line in lines)]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    workers = []

    def started(log, what):
        workers.append(Worker(log, what, tmp_path / f"worker-{len(workers)}"))
        return workers[-1]

    started.workers = workers
    yield started
    for worker in workers:
        worker.kill()


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path / "log")
    log.create_topic("jobs", partitions=2)
    return log


def send(log, count):
    with log.producer() as producer:
        for number in range(count):
            producer.send("jobs", b"%d" % number, key=b"%d" % number)


def test_messages_held_by_killed_consumers_go_to_others(log, start):
    send(log, 9)
    holders = [start(log, "hold") for _ in range(3)]
    until(lambda: len({number for holder in holders for _, number, _, _ in holder.said()}) == 9)
    for holder in holders:
        holder.kill()
    worker = start(log, "work")
    until(lambda: sum(what == "done" for what, *_ in worker.said()) == 9)
    assert {number for _, number, count, _ in worker.said() if count > 1} == set(range(9))


def test_in_a_storm_of_kills_every_message_is_done_and_none_comes_again_after_it(log, start):
    count, chance = 400, random.Random(7)
    send(log, count)
    running = [start(log, "work") for _ in range(4)]

    def done():
        return {number for worker in start.workers for what, number, _, _ in worker.said() if what == "done"}

    for share in (0.1, 0.25, 0.4, 0.55, 0.7, 0.85):
        until(lambda goal=share * count: len(done()) >= goal)
        victim = chance.randrange(len(running))
        running[victim].kill()
        running[victim] = start(log, "work")
    queue = log.queue("jobs", name="workers", max_deliveries=1_000)
    until(lambda: _settled(queue))
    for worker in start.workers:
        worker.kill()
    events = [event for worker in start.workers for event in worker.said()]
    done_at = {}
    for what, number, _, at in events:
        if what == "done":
            done_at[number] = min(at, done_at.get(number, at))
    # A kill between the acknowledgement and the report leaves one without it: at most as many as there were kills.
    assert len(done_at) >= count - len(start.workers)
    again = [number for what, number, _, began in events if what == "received" and began > done_at.get(number, began)]
    assert again == []
    assert queue.depth().dead == 0


def _settled(queue):
    depth = queue.depth()
    return depth.ready == depth.in_flight == depth.delayed == 0
