"""Identity of processes on this machine, and the processes of a driver's Spark."""

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
# Other programs that the user's own code starts also inherit the mark; they are not ours.
_OF_WORKERS = (b"headrace.spark.workers.fork_server", b"headrace/spark/workers/interpreter.py")
_OF_SPARK = (b"org.apache.spark.deploy.SparkSubmit", *_OF_WORKERS)
_PATIENCE = 10.0


def identity(pid: int) -> str:
    """The identity of a live process: its number and its start time, since numbers are reused. Only the number where the system has no
    `/proc`; empty if no such process is alive.
    """
    if not Path("/proc/self/stat").exists():
        return str(pid)
    try:
        # The name of the program is in brackets, and may itself contain brackets.
        status, *rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if status in "ZX" else f"{pid}-{rest[18]}"


def kill(process: str) -> bool:
    """Kill a process, given by its identity, as a power cut would; False if it does not live."""
    number = process.partition("-")[0]
    if not number.isdecimal() or identity(int(number)) != process:
        return False
    os.kill(int(number), signal.SIGKILL)
    return True


def workers_of(driver: str) -> list[str]:
    """The identities of the Python workers of a driver's Spark on this machine."""
    found = []
    for pid in _numbers():
        # A process that ends meanwhile is gone, as are those of other users.
        with suppress(OSError):
            if _belongs(pid, driver, _OF_WORKERS):
                found.append(identity(pid))
    return [worker for worker in found if worker]


def end_remnants(driver: str) -> None:
    """End the remaining Spark processes of a driver that has died, given by its identity; does nothing while the driver is alive.

    Spark and its workers end by themselves soon after their driver, unless they are stopped (SIGSTOP, a debugger): then they may still hold
    locks.
    """
    number = driver.partition("-")[0]
    if not number.isdecimal() or identity(int(number)) == driver:
        return
    deadline = time.monotonic() + _PATIENCE
    # New ones may have started meanwhile.
    while (killed := _killed(driver)) and time.monotonic() < deadline:
        for handle in killed:
            # The pidfd becomes readable when the process has ended. The process loses its environment before that, but not its locks.
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(max(0, round(1000 * (deadline - time.monotonic()))))
            os.close(handle)


def _killed(driver: str) -> list[int]:
    """Handles of the processes of a driver's Spark that were found and killed."""
    found = []
    for pid in _numbers():
        # A process that has ended meanwhile is gone, as are those of other users. The handle never reaches a later process with the same
        # number.
        with suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if _belongs(pid, driver, _OF_SPARK):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found.append(handle)
            finally:
                if handle not in found:
                    os.close(handle)
    return found


def _belongs(pid: int, driver: str, programs: tuple[bytes, ...]) -> bool:
    place = Path(f"/proc/{pid}")
    marked = f"{DRIVER}={driver}".encode() in (place / "environ").read_bytes().split(b"\0")
    return marked and any(name in (place / "cmdline").read_bytes() for name in programs)


def _numbers() -> Iterator[int]:
    return (int(place.name) for place in Path("/proc").glob("[0-9]*"))
