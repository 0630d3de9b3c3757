"""Processes that a dead driver left are ended, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.core.files.disk import PosixLock
from headrace.core.processes import DRIVER, end_remnants, identity
from headrace.jobs.directory import JobDirectory

HOLD = """
import sys
from pathlib import Path
from headrace.core.files.disk import PosixLock

lock = PosixLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python process that belongs to a driver, and wait until it says something."""
    with ExitStack() as until:

        def begin(program: str, *arguments: str, driver: str = "") -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", program, *arguments]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, DRIVER: driver}, start_new_session=True
            )
            until.enter_context(process)
            until.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline()
            return process

        yield begin


WAIT = "import sys; print('here', flush=True); sys.stdin.read()"


@pytest.fixture
def dead(start: Start) -> str:
    """The identity of a driver that was killed."""
    driver = start(WAIT)
    name = identity(driver.pid)
    driver.kill()
    driver.wait()
    return name


def test_a_frozen_process_of_a_dead_driver_that_holds_a_lock_of_the_log_is_ended_by_the_next_run(
    start: Start, dead: str, tmp_path: Path
) -> None:
    place, lock = JobDirectory(tmp_path, "clicks"), PosixLock(tmp_path / "append.lock")
    worker = start(HOLD, str(tmp_path / "append.lock"), "headrace.spark.workers.fork_server", driver=dead)
    worker.send_signal(signal.SIGSTOP)
    with place.held():
        (place.path / "driver").write_text(dead)
    assert not lock.acquire(wait=False)
    with place.held():
        assert lock.acquire(wait=False)
    assert worker.wait() == -signal.SIGKILL


def test_nothing_of_a_driver_that_lives_is_ended(start: Start) -> None:
    driver = start(WAIT)
    worker = start(WAIT, "headrace.spark.workers.fork_server", driver=identity(driver.pid))
    end_remnants(identity(driver.pid))
    assert worker.poll() is None


def test_nothing_is_ended_for_a_driver_that_is_not_known(start: Start) -> None:
    worker = start(WAIT, "headrace.spark.workers.fork_server", driver="")
    for torn in ("", "-", "\0\0\0", "4194305-1"):
        end_remnants(torn)
    assert worker.poll() is None


def test_programs_of_the_users_own_and_processes_of_other_drivers_are_left_alone(start: Start, dead: str) -> None:
    own, other = start(WAIT, driver=dead), start(WAIT, "headrace.spark.workers.fork_server", driver=f"{dead}1")
    end_remnants(dead)
    assert (own.poll(), other.poll()) == (None, None)


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    assert identity(os.getpid()) == identity(os.getpid()) != identity(os.getppid())
    assert identity(2**22 + 1) == ""
