"""A process that works with a log and tells each step over a pipe, until it is killed; and the check of what it leaves behind."""

from __future__ import annotations

import gc
import json
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log, Producer
from headrace.log.errors import DiskFailed, RecordLost
from tests.support.descriptors import readable

KILLED = 9
DEADLINE = 30.0
TOPICS = ("a", "b")
SMALL = {"segment.bytes": 4096}


def prepare(path: Path) -> None:
    """A log with the topics that `everything` uses, and a few records in them."""
    log = Log(path, clock=ManualClock())
    for name in TOPICS:
        log.create_topic(name, config=SMALL)
    with log.producer() as producer:
        for name in TOPICS:
            for number in range(3):
                producer.send(name, f"before {number}")
    assert log.offsets.of("g") == {}


class Teller:
    """Tells the steps of one process; each line is one write to a pipe, so lines of threads do not mix."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor

    def __call__(self, *step: Any) -> None:
        os.write(self._descriptor, (json.dumps([self.name, *step]) + "\n").encode())

    def send(self, producer: Producer, topic: str, text: str, *, level: str, transaction: str | None = None) -> None:
        """Send one record, told before and after."""
        value = f"{self.name} {text}"
        self("sent", topic, value, transaction)
        placed = producer.send(topic, value).result()
        self("stored", topic, value, placed.offset, level)


def everything(log: Log, tell: Teller) -> None:
    """Appends, epochs, transactions over two topics and offsets, a group commit of threads, and closed segments."""
    appends(log, tell)
    transactions(log, tell)
    group_commit(log, tell)


def appends(log: Log, tell: Teller) -> None:
    for level in ("all", "1"):
        producer = log.producer(acks=level, linger=None, retries=0)
        for number in range(2):
            tell.send(producer, "a", f"{level} {number}", level=level)
    for epoch in (1, 1, 2):
        values = [f"{tell.name} epoch {epoch} {number}" for number in range(3)]
        for value in values:
            tell("sent", "b", value, None)
        done = log.append_epoch("b", pa.table({"value": [value.encode() for value in values]}), writer=tell.name, epoch=epoch)[0]
        for place, value in enumerate(values):
            tell("stored", "b", value, done.base + place, "all")
    log.partition(log.topic("a"), 0).roll()
    producer = log.producer(linger=None, retries=0)
    tell.send(producer, "a", "large " + "x" * 5000, level="all")
    tell.send(producer, "a", "after", level="all")


def transactions(log: Log, tell: Teller) -> None:
    producer = log.producer(transactional_id=f"t {tell.name}", linger=None, retries=0)
    for number, commit in enumerate((True, False, True)):
        name = f"{tell.name} {number}"
        producer.begin_transaction()
        for topic in TOPICS:
            tell.send(producer, topic, f"transaction {number}", level="1", transaction=name)
        producer.send_offsets(f"g {tell.name}", {("a", 0): number + 1})
        tell("committing" if commit else "aborting", name, number + 1)
        (producer.commit_transaction if commit else producer.abort_transaction)()
        tell("committed" if commit else "aborted", name, number + 1)


def group_commit(log: Log, tell: Teller) -> None:
    def work(number: int) -> None:
        producer = log.producer(linger=None, retries=0)
        for count in range(2):
            tell.send(producer, "b", f"thread {number} {count}", level="all")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def readers(log: Log, tell: Teller) -> None:
    """A member of a group that commits what it has read, one record after the other."""
    with log.consumer("a", group="readers", auto_commit=False) as consumer:
        for offset in (1, 2, 3):
            while consumer.position("a", 0) < offset:
                consumer.poll(max_rows=1, timeout="0s")
            tell("committing offset", offset)
            consumer.commit()
            tell("committed offset", offset)


def unlucky(log: Log, tell: Teller) -> None:
    """Appends, some of which the disk may refuse: what is not acknowledged is left, or sent again until it is."""
    producers = {level: log.producer(acks=level, linger=None, retries=0) for level in ("all", "1")}
    for number in range(6):
        level = ("all", "1")[number % 2]
        with suppress(DiskFailed, RecordLost):
            tell.send(producers[level], "a", f"{level} {number}", level=level)
        if number == 3:
            with suppress(DiskFailed, RecordLost):
                log.partition(log.topic("a"), 0).roll()
    stubborn = log.producer(linger=None, retries=5)
    for number in range(3):
        tell.send(stubborn, "b", f"all {number}", level="all")


class Child:
    """A forked process at work on a log. The pages of a killed process stay, so this needs no disk, and is quick in memory."""

    def __init__(self, name: str, path: Path, work: Callable[[Log, Teller], None], failpoint: str | None = None) -> None:
        self.steps: list[list[Any]] = []
        self._rest = b""
        self._pipe, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            # Objects of other tests may belong to threads and connections that a fork does not have: to collect them here may crash.
            gc.freeze()
            try:
                failpoints.configure(failpoint)
                work(Log(path, clock=ManualClock()), Teller(name, theirs))
                status = 0
            except BaseException:  # noqa: BLE001 - told to the parent, which fails
                os.write(theirs, (json.dumps([name, "error", traceback.format_exc()]) + "\n").encode())
            finally:
                os._exit(status)
        os.close(theirs)

    def wait_for(self, count: int) -> None:
        """Wait until this many more of its records are stored."""
        wanted = self.stored + count
        while self.stored < wanted:
            assert self._listen(), f"the process ended with {self.steps[-1:]}"

    @property
    def stored(self) -> int:
        return sum(step[1] == "stored" for step in self.steps)

    def end(self) -> bool:
        """Wait for its end; whether it was killed."""
        while self._listen():
            pass
        os.close(self._pipe)
        _, status = os.waitpid(self.pid, 0)
        errors = [step[2] for step in self.steps if step[1] == "error"]
        assert not errors, errors[0]
        assert status == 0 or os.WTERMSIG(status) == KILLED, status
        return status != 0

    def _listen(self) -> bool:
        assert readable(self._pipe, DEADLINE), "the process does not go on"
        data = os.read(self._pipe, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.steps += [json.loads(line) for line in lines]
        return bool(data)


@contextmanager
def neighbor(path: Path) -> Iterator[Child]:
    """Another process that appends to the same partitions all the time."""
    stopped, stop = os.pipe()

    def work(log: Log, tell: Teller) -> None:
        os.close(stop)
        producers = [log.producer(linger=None, acks=level) for level in ("all", "1")]
        number = 0
        while not readable(stopped, 0):
            number += 1
            tell.send(producers[number % 2], TOPICS[number // 2 % 2], f"{number}", level=("all", "1")[number % 2])

    child = Child("neighbor", path, work)
    child.wait_for(1)
    try:
        yield child
        # Whatever happened to the others, it goes on.
        child.wait_for(4)
    finally:
        os.close(stop)
        os.close(stopped)
        assert not child.end()


def check(path: Path, steps: list[list[Any]]) -> None:
    """Everything acknowledged is there once, at its offset and in its order; transactions are whole; and all of it goes on."""
    log = Log(path, clock=ManualClock())
    names = sorted({step[0] for step in steps})
    producers = [log.producer(transactional_id=f"t {name}", linger=None) for name in names]
    for topic in TOPICS:
        # What a process had written when it died, and nobody has synced yet, is seen with the next append.
        log.partition(log.topic(topic), 0).sync()
    held = {topic: rows_of(log, topic, "read_uncommitted") for topic in TOPICS}
    seen = {topic: rows_of(log, topic, "read_committed") for topic in TOPICS}
    for topic in TOPICS:
        _check_appends(topic, held[topic], steps)
    _check_transactions(seen, steps)
    for name in names:
        _check_offsets(log, name, steps)
    for producer in producers:
        with producer.transaction():
            for topic in TOPICS:
                producer.send(topic, "end")
    for topic in TOPICS:
        after = rows_of(log, topic, "read_uncommitted")
        assert list(after.items())[: len(held[topic])] == list(held[topic].items())
        assert list(after.values())[len(held[topic]) :] == ["end"] * len(names)


def rows_of(log: Log, topic: str, isolation: str) -> dict[int, str]:
    table = log.read(topic, columns=["_offset", "value"], isolation=isolation)
    rows = dict(zip(table["_offset"].to_pylist(), (value.decode() for value in table["value"].to_pylist()), strict=True))
    assert list(rows) == sorted(rows)
    assert len(rows) == table.num_rows
    return rows


def _check_appends(topic: str, rows: dict[int, str], steps: list[list[Any]]) -> None:
    values = list(rows.values())
    assert len(set(values)) == len(values)
    sent = [step[3] for step in steps if step[1] == "sent" and step[2] == topic]
    assert set(values) <= {*sent, *(f"before {number}" for number in range(3))}
    for _, kind, place, value, offset, _ in (step for step in steps if step[1] == "stored"):
        assert kind != "stored" or place != topic or rows.get(offset) == value
    for process in {step[0] for step in steps}:
        for kind in ("all", "1", "epoch", "transaction", "thread 0", "thread 1", "thread 2"):
            begun = list(dict.fromkeys(value for value in sent if value.startswith(f"{process} {kind} ")))
            kept = [value for value in values if value.startswith(f"{process} {kind} ")]
            assert kept == [value for value in begun if value in set(values)]
        for epoch in (1, 2):
            assert sum(value.startswith(f"{process} epoch {epoch} ") for value in values) in (0, 3)


def _check_transactions(seen: dict[str, dict[int, str]], steps: list[list[Any]]) -> None:
    outcomes = {step[2]: step[1] for step in steps if step[1] in ("committing", "committed", "aborting", "aborted")}
    records: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        if step[1] == "sent" and step[4] is not None:
            records.setdefault(step[4], []).append((step[2], step[3]))
    for name, parts in records.items():
        found = [value in seen[topic].values() for topic, value in parts]
        outcome = outcomes.get(name)
        assert all(found) or not any(found), (name, found)
        assert all(found) or outcome != "committed", name
        assert not any(found) or outcome in ("committing", "committed"), (name, outcome)


def _check_offsets(log: Log, name: str, steps: list[list[Any]]) -> None:
    """Offsets go with the records of their transaction."""
    ends = [(step[1], step[3]) for step in steps if step[0] == name and step[1] in ("committing", "committed")]
    committed = [offset for outcome, offset in ends if outcome == "committed"]
    found = log.offsets.of(f"g {name}")
    offset = found[("a", 0)].offset if found else 0
    assert offset in (max(committed, default=0), max((offset for _, offset in ends), default=0))


def check_readers(path: Path, steps: list[list[Any]]) -> None:
    """A committed offset stays committed, and another member of the group goes on from there."""
    clock = ManualClock()
    clock.advance(timedelta(minutes=1))
    log = Log(path, clock=clock)
    offsets = {kind: [step[2] for step in steps if step[1] == f"{kind} offset"] for kind in ("committing", "committed")}
    with log.consumer("a", group="readers", auto_commit=False) as consumer:
        table = consumer.poll(timeout="0s")
        found = table["_offset"][0].as_py() if table is not None else 3
        assert found in (max(offsets["committed"], default=0), max(offsets["committing"], default=0))
        consumer.commit()
        assert consumer.committed()["a", 0] == 3
