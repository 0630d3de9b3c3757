"""Who holds locks of the log: a process that stands still with one holds up all others."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path


def holders(among: Set[int]) -> set[int]:
    """Those of some processes that hold a lock as the log takes them (`flock`), not those that wait for one."""
    # "5: FLOCK ADVISORY WRITE 4711 08:02:123 0 EOF"; who waits has an arrow behind the number.
    lines = [line.split() for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines()]
    found = {int(line[4]) for line in lines if line[1] == "FLOCK"}
    # A JVM has such a lock on a file of its own, for good.
    return {pid for pid in found if pid in among and Path(f"/proc/{pid}/exe").resolve().name != "java"}
