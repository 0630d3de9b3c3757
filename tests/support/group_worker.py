"""Members of a group as processes of their own: started, stopped, paused and killed by a test, told what to do through a pipe."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from headrace.core import failpoints
from headrace.log import GroupConsumer, Log, Producer
from headrace.log.errors import Fenced
from tests.support.processes import PATIENCE

_T = TypeVar("_T")
# A server that has imported everything already (the main module of who starts it, and pandas for Arrow's first array too): a new
# process takes milliseconds, and shares no thread or lock with the test.
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["pytest", "pandas", "headrace.log", __name__])
TRANSACTION_TIMEOUT = timedelta(seconds=2)
SETTINGS = {"group": "workers", "auto_commit": False, "session_timeout": "1s", "heartbeat_interval": "200ms"}


class Worker:
    """One process that runs a function of this module."""

    def __init__(self, work: Callable[..., None], path: Path, **arguments: Any) -> None:
        self.pipe, theirs = _processes.Pipe()
        self._process = _processes.Process(target=_run, args=(work, path, theirs, arguments), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def tell(self, word: str) -> None:
        self.pipe.send(word)

    def answer(self, within: float = PATIENCE) -> Any:
        """What the process says next."""
        assert self.pipe.poll(within), "no answer"
        return self.pipe.recv()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.end(-signal.SIGKILL)

    def stop(self) -> None:
        """Let it leave the group."""
        self.tell("stop")
        self.end(0)

    def end(self, *codes: int) -> int:
        """The exit code, which must be one of `codes` if any are given."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        assert code is not None, "the process does not end"
        assert not codes or code in codes, f"exit code {code}"
        self.pipe.close()
        return code


def wait_for(condition: Callable[[], _T], within: float = PATIENCE, *, or_else: _T | None = None) -> _T:
    """The first answer that counts as true; after a time-out `or_else`, or a failure."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() >= deadline:
            assert or_else is not None, f"still {found!r} after {within} seconds"
            return or_else
        threading.Event().wait(0.02)
    return found


def open_log(path: Path) -> Log:
    return Log(path, transaction_timeout=TRANSACTION_TIMEOUT)


def _run(work: Callable[..., None], path: Path, pipe: Connection, arguments: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(open_log(path), pipe, **arguments)


def _told_to_stop(pipe: Connection) -> bool:
    return pipe.poll(0)


def process_then_commit(log: Log, pipe: Connection, **settings: Any) -> None:
    """At least once: what was read goes to `processed`, then its offsets are committed."""
    with log.consumer("numbers", **{**SETTINGS, **settings}) as consumer, log.producer(acks="1") as producer:
        while not _told_to_stop(pipe):
            table = consumer.poll(timeout="50ms", max_rows=25)
            if table is not None:
                producer.send_table("processed", table.select(["value"]))
                # Others have taken over and process these records again: that is what at least once means.
                with suppress(Fenced):
                    consumer.commit()


def copy_exactly_once(log: Log, pipe: Connection, *, name: str, **settings: Any) -> None:
    """Exactly once: what was read goes to `copies` in one transaction with its offsets."""
    producer = log.producer(transactional_id=name)
    with log.consumer("numbers", **{**SETTINGS, **settings}) as consumer:
        while not _told_to_stop(pipe):
            try:
                _copy(consumer, producer)
            except Fenced:
                # The group has moved on, or the transaction was open for too long: begin again from what is committed.
                with suppress(Fenced):
                    producer.close()
                producer = log.producer(transactional_id=name)
                consumer.rewind()
    producer.close()


def _copy(consumer: GroupConsumer, producer: Producer) -> None:
    table = consumer.poll(timeout="50ms", max_rows=25)
    if table is not None:
        with producer.transaction():
            producer.send_table("copies", table.select(["value"]))
            producer.send_offsets(consumer)


def read_and_wait(log: Log, pipe: Connection) -> None:
    """Reads, says what; waits for a word; tries to commit, says how that went; then reads on as a new member."""
    with log.consumer("numbers", **SETTINGS) as consumer:
        table = None
        while table is None:
            table = consumer.poll(timeout="50ms")
        pipe.send(table.num_rows)
        pipe.recv()
        try:
            consumer.commit()
            pipe.send("committed")
        except Fenced:
            pipe.send("fenced")
        while not _told_to_stop(pipe):
            consumer.poll(timeout="50ms")
            consumer.commit()


def copy_once_and_die(log: Log, _: Connection, *, dies_at: int, transactional: bool) -> None:
    """One round of a member from joining to leaving, killed at one of its operations on the disk."""
    failpoints.configure(f"*=kill@{dies_at}")
    settings = {**SETTINGS, "instance": "only", "session_timeout": "10 minutes"}
    name = f"copy {dies_at}" if transactional else None
    with log.consumer("numbers", **settings) as consumer, log.producer(transactional_id=name) as producer:
        if transactional:
            _copy(consumer, producer)
        else:
            table = consumer.poll(timeout="0s")
            if table is not None:
                producer.send_table("copies", table.select(["value"]))
            consumer.commit()
