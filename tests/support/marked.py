"""Processes that carry the mark of one test run, in whatever process tree."""

import os
import signal
import time
from collections.abc import Iterable, Set
from pathlib import Path

from headrace.testing.locks import holders
from tests.support.processes import PATIENCE, until

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

    None of them holds a lock of the log then: the next process would wait for it.
    """
    while holders(stop(run, but)):
        wake(run)
        time.sleep(0.02)


def stop(run: str, but: int) -> set[int]:
    """Let none of them go on, wherever they are; one is left out. None moves any more when this returns."""
    frozen: set[int] = set()
    while fresh := set(processes_of(run)) - frozen - {but}:
        _signal(fresh, signal.SIGSTOP)
        for process in fresh:
            until(lambda process=process: not _moves(process))
        frozen |= fresh
    return frozen


def _moves(process: int) -> bool:
    """Whether a thread of a process runs or may run: one of them takes the signal, when it is its turn, and then stops the others.

    A thread that waits in the kernel for a disk, or for a process it starts, ends that call at most.
    """
    return not _states(process).isdisjoint({"R", "S"})


def _states(process: int) -> set[str]:
    """The states of its threads, in the letters of the kernel; none when it is gone."""
    found: set[str] = set()
    tasks = Path(f"/proc/{process}/task")
    try:
        threads = [thread.name for thread in tasks.iterdir()]
    except OSError:  # the process ended
        return found
    for thread in threads:
        try:
            found.add((tasks / thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0])
        except OSError:  # the thread ended
            continue
    return found


def standing(run: str) -> set[int]:
    """The stopped ones of them, in any way."""
    return {process for process in processes_of(run) if "T" in _states(process)}


def wake(run: str, only: Set[int] | None = None) -> None:
    """Let what was stopped go on: all of them, or only some."""
    _signal(processes_of(run) if only is None else only, signal.SIGCONT)


def _signal(processes: Iterable[int], number: signal.Signals) -> None:
    for pid in processes:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
