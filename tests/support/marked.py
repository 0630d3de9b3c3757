"""Processes that carry the mark of one test run, whoever started them."""

import os
import signal
import time
from pathlib import Path

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


def wait_until_gone(run: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while left := processes_of(run):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def kill(run: str) -> None:
    """End all of them at once, as a power cut would; also those that are born meanwhile."""
    while alive := processes_of(run):
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
