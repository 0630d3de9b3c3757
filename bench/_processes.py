"""The memory and time of the processes that this one started, directly or not: Spark's JVM and its Python workers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from _harness import memory_megabytes


def forget_peaks() -> None:
    """Begin a new measure."""
    for pid in descendants():
        with suppress(OSError):
            # Writing 5 makes the kernel forget the former peak of a process's memory.
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_megabytes() -> float:
    """The sum of the peaks since then; pages that forked workers share count for each of them."""
    total = 0.0
    for pid in descendants():
        # A process may end meanwhile, and one that has ended but was not waited for has no memory.
        with suppress(OSError, StopIteration):
            total += memory_megabytes(pid, "VmHWM")
    return total


def cpu_seconds(root: int | None = None) -> float:
    """The CPU time of this process, or of another, of all below it, and of those that have ended."""
    ticks = 0
    for pid in [root or os.getpid(), *descendants(root)]:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(root: int | None = None) -> list[int]:
    """All processes below this one, or below another."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, wave = list[int](), [root or os.getpid()]
    while wave:
        wave = [pid for pid, above in parents.items() if above in wave]
        found += wave
    return found
