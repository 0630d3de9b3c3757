"""Processes that carry the mark of one test run, whoever started them."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from headrace.testing.locks import holders
from tests.support.processes import PATIENCE

MARK = "HEADRACE_TEST_RUN"


def processes_of(run: str) -> dict[int, str]:
    """Every process that has the mark in its environment, and its command."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={run}".encode() in (directory / "environ").read_bytes():
                found[int(directory.name)] = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
        except OSError:  # it ended, or is not ours
            continue
    return found


def wait_until_gone(run: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := processes_of(run):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def kill(run: str) -> None:
    """End all of them at once, as a power cut would; also those that are born meanwhile."""
    while alive := processes_of(run):
        _signal(alive, signal.SIGKILL)


def freeze(run: str, but: int) -> None:
    """Let none of them go on, as a machine that swaps or a hypervisor that pauses would; one is left out.

    None of them holds a lock of the log then: whoever comes next would wait for it.
    """
    while holders(stop(run, but)):
        wake(run)
        time.sleep(0.02)


def stop(run: str, but: int) -> set[int]:
    """Let none of them go on, wherever they are; one is left out."""
    frozen: set[int] = set()
    while fresh := set(processes_of(run)) - frozen - {but}:
        _signal(fresh, signal.SIGSTOP)
        frozen |= fresh
    return frozen


def wake(run: str) -> None:
    """Let what was frozen go on."""
    _signal(processes_of(run), signal.SIGCONT)


def _signal(processes: Iterable[int], number: signal.Signals) -> None:
    for pid in processes:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
