"""A disk that is really full: what was acknowledged can be read, nothing is there twice, and the log goes on when there is room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.log.errors import DiskFailed, RecordLost
from tests.support.crashes import Child, Teller

SIZE = 2 * 1024 * 1024
BALLAST = 256 * 1024
REFUSED = (DiskFailed, RecordLost)


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A small file system of its own, part of it taken by a file that can be removed."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mounting a small file system needs root: {mounted.stderr.strip()}")
    try:
        (path / "ballast").write_bytes(bytes(BALLAST))
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def open_log(disk: Path) -> Log:
    return Log(disk / "log", clock=ManualClock())


def fill(disk: Path) -> None:
    """Take every byte that is left."""
    with (disk / "filling").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def make_room(disk: Path) -> None:
    for name in ("ballast", "filling"):
        (disk / name).unlink(missing_ok=True)


def rows(log: Log, topic: str = "a", isolation: str = "read_uncommitted") -> dict[int, bytes]:
    table = log.read(topic, columns=["_offset", "value"], isolation=isolation)
    found = dict(zip(table["_offset"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert list(found) == sorted(found)
    assert len(set(found.values())) == table.num_rows
    return found


def check(log: Log, stored: dict[int, bytes], sent: list[bytes], topic: str = "a") -> None:
    """Everything acknowledged is where it was said to be; the order is that of sending; nothing else is there."""
    found = rows(log, topic)
    assert stored.items() <= found.items()
    assert list(found.values()) == [value for value in sent if value in set(found.values())]


@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize("size", [100, 3000, 70_000])
def test_appends_to_a_full_disk_are_refused_and_go_on_when_there_is_room(disk, acks, size):
    log = open_log(disk)
    log.create_topic("a", config={"segment.bytes": 100_000})
    producer = log.producer(acks=acks, linger=None, retries=0)
    stored: dict[int, bytes] = {}
    sent: list[bytes] = []

    def send() -> bool:
        sent.append(b"%06d " % len(sent) + b"x" * size)
        try:
            stored[producer.send("a", sent[-1]).result().offset] = sent[-1]
        except REFUSED:
            return False
        return True

    for _ in range(3):
        assert send()
    if size < 1000:
        fill(disk)
    refusals = 0
    while refusals < 5:
        refusals += not send()
    check(log, stored, sent)
    check(open_log(disk), stored, sent)
    make_room(disk)
    for _ in range(3):
        assert send()
    assert len(stored) == len(set(stored)) >= 6
    check(log, stored, sent)
    check(open_log(disk), stored, sent)


def test_a_send_that_is_repeated_until_there_is_room_is_stored_once(disk):
    log = open_log(disk)
    log.create_topic("a")
    fill(disk)
    table = pa.table({"value": [b"%d" % number * 2000 for number in range(5)]})
    for _ in range(4):
        with pytest.raises(REFUSED):
            log.append_epoch("a", table, writer="job", epoch=1)
    make_room(disk)
    first = log.append_epoch("a", table, writer="job", epoch=1)[0]
    again = open_log(disk).append_epoch("a", table, writer="job", epoch=1)[0]
    assert (first.repeated, again.repeated) == (False, True)
    assert list(rows(log).values()) == table["value"].to_pylist()


def test_a_transaction_on_a_full_disk_takes_no_effect_and_its_writer_goes_on(disk):
    log = open_log(disk)
    for topic in "ab":
        log.create_topic(topic)
    producer = log.producer(transactional_id="t", linger=None, retries=0)
    with producer.transaction():
        producer.send("a", b"before")
    fill(disk)

    def refused() -> None:
        with producer.transaction():
            for topic in "ab":
                producer.send(topic, b"refused " + b"x" * 9000)

    for _ in range(3):
        with pytest.raises(REFUSED):
            refused()
    assert list(rows(open_log(disk), isolation="read_committed").values()) == [b"before"]
    make_room(disk)
    successor = open_log(disk).producer(transactional_id="t", linger=None)
    with successor.transaction():
        for topic in "ab":
            successor.send(topic, b"after")
    assert list(rows(log, "a", "read_committed").values()) == [b"before", b"after"]
    assert list(rows(log, "b", "read_committed").values()) == [b"after"]


def test_a_compaction_without_room_leaves_everything_and_is_made_up_for(disk):
    log = open_log(disk)
    log.create_topic("a", config={"cleanup.policy": "compact", "segment.bytes": 50_000, "min.compaction.lag.ms": 3_600_000})
    with log.producer(linger=None) as producer:
        for number in range(40):
            producer.send("a", b"%d " % number + os.urandom(4000), key=b"%d" % (number % 15)).result()
    log.maintenance.wait()
    before = rows(log)
    log.alter_topic("a", config={"min.compaction.lag.ms": 0})
    fill(disk)
    [report] = log.maintain("a", force=True)
    assert isinstance(report.error, DiskFailed)
    assert rows(open_log(disk)) == before
    make_room(disk)
    [report] = open_log(disk).maintain("a", force=True)
    assert report.error is None
    assert report.compacted is not None
    assert report.compacted.records_removed > 0
    after = rows(open_log(disk))
    assert after.items() < before.items()
    assert list(before)[-1] == list(after)[-1]


def test_a_process_killed_on_a_full_disk_leaves_a_log_that_opens_and_goes_on(disk):
    log = open_log(disk)
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"first")
    del log, producer
    fill(disk)

    def work(log: Log, tell: Teller) -> None:
        producer = log.producer(linger=None, retries=0)
        number = 0
        while True:
            number += 1
            with suppress(*REFUSED):
                tell.send(producer, "a", f"{number} " + "x" * 5000, level="all")

    child = Child("p", disk / "log", work, "disk.truncate.before=kill@3")
    assert child.end()
    stored = {step[4]: step[3].encode() for step in child.steps if step[1] == "stored"}
    found = rows(open_log(disk))
    assert found.items() >= {0: b"first", **stored}.items()
    make_room(disk)
    log = open_log(disk)
    with log.producer(linger=None) as producer:
        assert producer.send("a", b"last").result().offset >= len(found)
    assert list(rows(log).values())[-1] == b"last"
