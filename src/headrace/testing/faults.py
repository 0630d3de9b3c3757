"""Faults for tests: named failpoints in product code, and the actions there.

A process reads its rules from `HEADRACE_FAILPOINTS` (see `core.failpoints`); a test sets those of its own process with `faults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.core import failpoints
from headrace.core.failpoint_names import FAILPOINTS
from headrace.core.failpoints import VARIABLE, reach

__all__ = ["FAILPOINTS", "VARIABLE", "faults", "reach", "recorded"]


@contextmanager
def faults(rules: str) -> Iterator[None]:
    """Apply the rules in this process while the block runs.

    >>> with faults("disk.sync.before=error(ENOSPC)@2"):
    ...     reach("disk.sync.before")
    ...     reach("disk.sync.before")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'disk.sync.before'
    """
    failpoints.configure(rules)
    try:
        yield
    finally:
        failpoints.configure(None)


def recorded(file: Path) -> list[str]:
    """The failpoints that processes with `*=record(FILE)` have passed, in their order."""
    return file.read_text(encoding="utf-8").split() if file.is_file() else []
