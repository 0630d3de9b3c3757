"""Which process of this machine is which, and which ones a driver's Spark consists of."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DRIVER = "HEADRACE_DRIVER"
"""In the environment of every process that a driver starts: whose it is."""
# Other programs that the user's own code starts inherit the mark, too, and are none of ours.
_OF_SPARK = (b"org.apache.spark.deploy.SparkSubmit", b"headrace.spark.nursery", b"headrace/spark/interpreter.py")
_PATIENCE = 10.0


def identity(pid: int) -> str:
    """A process that lives, by its number and the moment it began: numbers are given again. Without that moment where the system has no
    `/proc`; nothing if no such process lives.
    """
    if not Path("/proc/self/stat").exists():
        return str(pid)
    try:
        # The name of the program stands in brackets, and may have others in it.
        status, *rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if status in "ZX" else f"{pid}-{rest[18]}"


def end_remnants(driver: str) -> None:
    """End what is left on this machine of the Spark of a driver, given by its identity, that has died; if it lives, nothing happens.

    Spark and its workers end by themselves soon after their driver, unless they stand still (SIGSTOP, a debugger): then they may hold
    locks.
    """
    number = driver.partition("-")[0]
    if not number.isdecimal() or identity(int(number)) == driver:
        return
    deadline = time.monotonic() + _PATIENCE
    # Others may be born meanwhile.
    while (killed := _killed(driver)) and time.monotonic() < deadline:
        for handle in killed:
            # To be read when it has ended. It has lost its environment before that, but not its locks.
            select.select([handle], [], [], max(0, deadline - time.monotonic()))
            os.close(handle)


def _killed(driver: str) -> list[int]:
    """Handles of the processes of a driver's Spark that there were to kill."""
    found = []
    for pid in _numbers():
        # A process that ends meanwhile is gone, as are those of other users; and by this handle no later one of its number is reached.
        with suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if _belongs(pid, driver):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found.append(handle)
            finally:
                if handle not in found:
                    os.close(handle)
    return found


def _belongs(pid: int, driver: str) -> bool:
    place = Path(f"/proc/{pid}")
    marked = f"{DRIVER}={driver}".encode() in (place / "environ").read_bytes().split(b"\0")
    return marked and any(name in (place / "cmdline").read_bytes() for name in _OF_SPARK)


def _numbers() -> Iterator[int]:
    return (int(place.name) for place in Path("/proc").glob("[0-9]*"))
