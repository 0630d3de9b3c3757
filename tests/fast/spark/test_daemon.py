"""The daemon, asked as Spark asks it: tasks by connections, pids to be killed by its standard input."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fast.spark.conftest import PYTHON
from tests.support.processes import PATIENCE, alive, until

# Stands for Spark's worker: a task is an order, and answers who has done it.
TASKS = """
import os, struct
from headrace.spark.workers.worker import leave_state

def main(infile, outfile):
    infile.read(12)
    order = infile.readline().decode().strip()
    if order == "keep":
        leave_state()
    if order == "wait":
        outfile.write(f"{os.getpid()}\\n".encode())
        outfile.flush()
        infile.readline()
    if order == "die":
        os._exit(9)
    outfile.write(f"{os.getpid()}\\n".encode())
    if order == "fail":
        raise SystemExit(-1)
"""


class Spark:
    """One connection to the daemon."""

    def __init__(self, place: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(place)
        self._answers = self._socket.makefile("rb")
        (self.pid,) = struct.unpack(">i", self._answers.read(4))

    def ask(self, task: int, order: str) -> None:
        self.say(struct.pack(">iii", -8, 0, task).decode("latin-1") + order)

    def say(self, text: str) -> None:
        self._socket.sendall(text.encode("latin-1") + b"\n")

    def answer(self) -> int | None:
        """The process that did the task; None if the connection was closed instead."""
        line = self._answers.readline()
        return int(line) if line else None

    def run(self, task: int, order: str = "do") -> int | None:
        self.ask(task, order)
        return self.answer()

    def reaches(self, task: int, process: int | None, order: str = "do") -> bool:
        """Whether a task gets to a process, once the daemon has heard that it is done with the task before."""

        def done() -> bool:
            reached = self.run(task, order) == process
            if not reached and order == "wait":
                self.say("")
                self.answer()
            return reached

        until(done)
        return True

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


class Running:
    """A daemon, and connections to it."""

    def __init__(self, process: subprocess.Popen[bytes], place: str, connections: ExitStack) -> None:
        self.process = process
        self._place, self._connections = place, connections

    def connection(self) -> Spark:
        connection = Spark(self._place)
        self._connections.callback(connection.close)
        return connection

    def kill(self, pid: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(struct.pack(">i", pid))
        self.process.stdin.flush()


@pytest.fixture
def daemon(fork_server: dict[str, str], tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "pyspark_tasks.py").write_text(TASKS, encoding="utf-8")
    environment = {
        **fork_server,
        "HEADRACE_WORKER_PATH": os.pathsep.join(filter(None, [str(tmp_path), fork_server["HEADRACE_WORKER_PATH"]])),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(tmp_path),
    }
    command = [PYTHON, "-m", "headrace.spark.workers.daemon", "pyspark_tasks"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process, ExitStack() as connections:
        assert process.stdin is not None
        assert process.stdout is not None
        (length,) = struct.unpack(">i", process.stdout.read(4))
        yield Running(process, process.stdout.read(length).decode(), connections)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_a_task_is_done_by_the_process_that_keeps_its_state_whatever_connection_it_comes_by(daemon: Running) -> None:
    first, second = daemon.connection(), daemon.connection()
    # Both at once, so that they are two processes.
    first.ask(0, "keep")
    second.ask(1, "keep")
    keepers = {0: first.answer(), 1: second.answer()}
    assert keepers[0] != keepers[1]
    for connection in (first, second):
        assert connection.reaches(0, keepers[0])
        assert connection.reaches(1, keepers[1])


def test_a_task_whose_process_is_at_work_waits_for_nobody(daemon: Running) -> None:
    first, second = daemon.connection(), daemon.connection()
    keeper = first.run(0, "keep")
    # Spark may have two parts of one task at work, of which the one needs what the other gives.
    assert first.reaches(0, keeper, "wait")
    assert second.run(0) not in (keeper, None)
    first.say("")
    assert first.answer() == keeper


def test_a_process_that_keeps_state_is_spared_the_tasks_of_others(daemon: Running) -> None:
    connection = daemon.connection()
    keeper = connection.run(0, "keep")
    assert connection.reaches(0, keeper)
    assert connection.run(7) not in (keeper, None)
    assert connection.reaches(0, keeper)


def test_who_ends_amid_a_task_ends_its_connection_only(daemon: Running) -> None:
    first, second = daemon.connection(), daemon.connection()
    keeper = second.run(1, "keep")
    assert first.run(0, "die") is None
    assert second.reaches(1, keeper)
    assert daemon.connection().run(0) is not None


def test_a_task_that_failed_ends_its_process(daemon: Running) -> None:
    connection = daemon.connection()
    failed = connection.run(0, "fail")
    assert failed is not None
    until(lambda: not alive(failed))
    assert connection.run(0) not in (failed, None)


def test_a_task_that_spark_gives_up_ends_though_another_process_has_it_than_was_said(daemon: Running) -> None:
    first, second = daemon.connection(), daemon.connection()
    keeper = first.run(0, "keep")
    assert keeper is not None
    carrier = second if first.pid == keeper else first
    assert carrier.reaches(0, keeper, "wait")
    daemon.kill(carrier.pid)
    until(lambda: not alive(keeper))
    assert carrier.answer() is None


def test_a_connection_is_told_a_pid_that_no_other_has(daemon: Running) -> None:
    first = daemon.connection()
    first.run(0, "keep")
    first.run(1)
    others = [daemon.connection().pid for _ in range(3)]
    assert len({first.pid, *others}) == 4


def test_all_processes_end_with_the_daemon(daemon: Running) -> None:
    busy, idle = daemon.connection(), daemon.connection()
    busy.run(0, "wait")
    keeper = idle.run(1, "keep")
    assert keeper is not None
    assert daemon.process.stdin is not None
    daemon.process.stdin.close()
    until(lambda: not alive(keeper))
    assert busy.answer() is None
