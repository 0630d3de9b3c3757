"""The memory of the processes that this one started, directly or not: Spark's JVM and its Python workers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from _harness import memory_megabytes


def forget_peaks() -> None:
    """Begin a new measure."""
    for pid in _descendants():
        with suppress(OSError):
            # Writing 5 makes the kernel forget the former peak of a process's memory.
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_megabytes() -> float:
    """The sum of the peaks since then; pages that forked workers share count for each of them."""
    total = 0.0
    for pid in _descendants():
        # A process may end meanwhile, and one that has ended but was not waited for has no memory.
        with suppress(OSError, StopIteration):
            total += memory_megabytes(pid, "VmHWM")
    return total


def _descendants() -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, wave = list[int](), [os.getpid()]
    while wave:
        wave = [pid for pid, above in parents.items() if above in wave]
        found += wave
    return found
