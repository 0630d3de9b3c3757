"""A log directory whose bytes can be changed and put back, and everything that can be read from it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from headrace.core.clock import ManualClock, to_datetime
from headrace.log import Log
from headrace.log.errors import CorruptLog
from headrace.log.files.head import Head

MEMORY = Path("/dev/shm")
WORKERS = 2


def everywhere(work: Callable[..., Any], parts: list[Any]) -> list[Any]:
    """Do parts of a work at the same time, each in a process of its own."""
    with get_context("fork").Pool(WORKERS) as pool:
        return pool.map(work, parts, chunksize=1)


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory that is quick to write to; what is damaged here was damaged before it was read, so no disk is needed."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory:
        yield Path(directory)


def make_log(path: Path) -> None:
    """A log with closed, compacted and open segments, epochs, transactions and committed offsets, and records full of zeros."""
    clock = ManualClock()
    log = Log(path, clock=clock)
    small = {"segment.bytes": 3000}
    log.create_topic("t", schema="id bigint, at timestamp, text string", time="at", config=small)
    log.create_topic("k", config=small | {"cleanup.policy": "compact"})
    log.create_topic("z", config={"compression.type": "zstd"})
    random = Random(5)
    for epoch in range(1, 6):
        clock.advance(timedelta(seconds=1))
        rows = [{"id": row, "at": clock.now() - row, "text": random.choice(("", "text ")) * row} for row in range(20)]
        log.append_epoch("t", pa.Table.from_pylist(rows, log.topic("t").columns), writer="job", epoch=epoch)
    producer = log.producer(linger=None)
    for number in range(12):
        producer.send("k", random.choice((b"\0", b"x")) * random.randrange(400) + b"%d" % number, key=b"key %d" % (number % 3)).result()
        producer.send("z", b"%d" % number * 30).result()
    log.partition(log.topic("k"), 0).roll()
    producer.send("k", b"last", key=b"key 0").result()
    log.maintain("k", force=True)
    writer = log.producer(transactional_id="w", linger=None)
    for commit in (True, False, True):
        writer.begin_transaction()
        writer.send("t", {"id": 1, "at": to_datetime(clock.now()), "text": "in a transaction"}).result()
        writer.send_offsets("g", {("t", 0): 7 + commit})
        (writer.commit_transaction if commit else writer.abort_transaction)()
    log.delete_records("z", 0, before=3)
    log.producer(acks="1", linger=None).send("z", b"seen").result()
    log.partition(log.topic("t"), 0).sync()


# Each is a use of a topic, with a result that damage must not change.
USES: dict[str, Callable[[Log], Any]] = {
    "t": lambda log: log.read("t"),
    "t, from the middle": lambda log: log.read("t", columns=["id", "_offset"], start=51),
    "t, uncommitted": lambda log: log.read("t", columns=["id", "text"], isolation="read_uncommitted"),
    "k": lambda log: log.read("k", columns=["value", "_key", "_offset"]),
    "z": lambda log: log.read("z"),
    "t, epochs": lambda log: log.last_epochs("t", "job"),
    "t, times": lambda log: (log.max_event_time("t", 0, 30, 70), log.offsets_for_time("t", 1_767_225_603_000_000)),
    "offsets": lambda log: {place: found.offset for place, found in log.offsets.of("g").items()},
}
# The uses that reference the files of each topic.
_STANDING = {"t": "t", "k": "k", "z": "z", "__offsets": "o", "__transactions": "to"}


def results(path: Path, topic: str | None = None) -> dict[str, Any]:
    """What a process gets that opens the log now, as far as a topic's files matter for it; the error where it gets none."""
    log = Log(path, clock=ManualClock())
    found: dict[str, Any] = {}
    for name, use in USES.items():
        if topic is not None and name[0] not in _STANDING[topic]:
            continue
        try:
            found[name] = use(log)
        except CorruptLog as error:
            found[name] = error
    return found


class Files:
    """The files of a directory as they are now, to be put back after each change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = {found: found.read_bytes() for found in sorted(path.rglob("*")) if found.is_file()}

    def put_back(self) -> None:
        for found in self.path.rglob("*"):
            if found.is_file() and found not in self.content:
                found.unlink()
        for file, data in self.content.items():
            if not file.exists() or file.read_bytes() != data:
                file.write_bytes(data)

    def restart(self, *, heads: bool) -> Files:
        """The files as a restarted machine finds them, that had written its heads down, or had not."""
        for file, data in self.content.items():
            if file.name == "head" and heads:
                memory = memoryview(bytearray(data))
                state = Head(memory).load()
                assert state is not None
                Head(memory).store(state._replace(boot=state.boot + 1))
                file.write_bytes(memory)
            elif file.name == "head":
                file.unlink()
        return Files(self.path)


def copy_of(original: Path, path: Path) -> Path:
    return Path(shutil.copytree(original, path / str(os.getpid())))
