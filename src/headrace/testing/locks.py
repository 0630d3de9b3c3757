"""Holders of the log's locks: a stopped process with a lock blocks all others."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path


def holders(among: Set[int]) -> set[int]:
    """Those of some processes that hold a lock of the log (`flock`), without those that wait for one."""
    # "5: FLOCK ADVISORY WRITE 4711 08:02:123 0 EOF"; a waiting process has an arrow after the number.
    lines = [line.split() for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines()]
    found = {int(line[4]) for line in lines if line[1] == "FLOCK"}
    # A JVM permanently holds such a lock on a file of its own.
    return {pid for pid in found if pid in among and Path(f"/proc/{pid}/exe").resolve().name != "java"}
