"""Processes that tests have started and left running.

Every process inherits the run's mark from the one that started it, and pytest's variable that names the test at work.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

RUN = "PYTEST_RUN_OF_HEADRACE"  # not HEADRACE_...: a name like a setting is refused as a slip
_GRACE = 20.0
"""Seconds that processes have to end after the last test: what notices the end of its parent needs a moment."""


def mark() -> None:
    """Give this run its mark; a worker of pytest-xdist has inherited that of its run."""
    os.environ.setdefault(RUN, uuid.uuid4().hex)


@dataclass(frozen=True)
class Leftover:
    """A process, and the test during which it was started."""

    process: int
    command: str
    test: str

    def __str__(self) -> str:
        return f"{self.test} left process {self.process} running: {self.command}"


def end_leftovers(grace: float = _GRACE) -> list[Leftover]:
    """Wait for the processes of this run to end, and kill those that do not; returns these."""
    deadline = time.monotonic() + grace
    while (found := _leftovers()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for leftover in found:
        try:
            os.kill(leftover.process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return found


def _leftovers() -> list[Leftover]:
    mine, wanted, found = {os.getpid(), *_parents(os.getpid())}, f"{RUN}={os.environ[RUN]}".encode(), []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            variables = (directory / "environ").read_bytes().split(b"\0")
            if wanted in variables and int(directory.name) not in mine:
                test = next((name[20:].decode() for name in variables if name.startswith(b"PYTEST_CURRENT_TEST=")), "the run itself")
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:150]
                found.append(Leftover(int(directory.name), command, test))
        except OSError:  # it ended, or belongs to somebody else
            continue
    return found


def _parents(process: int) -> list[int]:
    """The processes above one: make and a shell may carry the mark of a run around them."""
    above: list[int] = []
    while process > 1 and Path("/proc/self").exists():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        above.append(process)
    return above
