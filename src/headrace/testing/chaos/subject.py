"""An app's job as processes: a driver, Spark's JVM and its Python workers, each of which a signal can reach."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from headrace.core.errors import JobError
from headrace.core.failpoints import VARIABLE
from headrace.testing.locks import holders

_LOOK = 0.02
_PATIENCE = 60.0
_TAIL = 15
# A worker is a fork of Spark's daemon, which is a fork of the fork server.
_FORK_SERVER, _GENERATIONS = "headrace.spark.workers.fork_server", 3


class ChaosSubject:
    """Starts a job as often as asked, one driver at a time."""

    def __init__(self, file: str, place: Path) -> None:
        self._command = [sys.executable, "-m", "headrace", "run", file, "--apart", str(place)]
        self._output = place / "run.txt"
        self._driver: subprocess.Popen[bytes] | None = None
        # Processes that may be left of earlier runs: they end with the subject.
        self._started: set[int] = set()

    @property
    def running(self) -> bool:
        return self._driver is not None and self._driver.poll() is None

    @property
    def code(self) -> int | None:
        """The exit code of the last run."""
        return self._driver.poll() if self._driver is not None else None

    def start(self, rules: str | None, *options: str) -> None:
        """Begin a run, with failpoints if wanted, and options of `headrace run`."""
        # The rules would also apply to each restart of the run itself: it ends at the first fault, and the next run has none.
        environment: Mapping[str, str] = {**os.environ, **({VARIABLE: rules, "HEADRACE_RESTARTS": "0"} if rules else {})}
        with self._output.open("wb") as output:
            self._driver = subprocess.Popen(
                [*self._command, *options], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._started.add(self._driver.pid)

    def said(self) -> str:
        """The end of the last run's output."""
        return "\n".join(self._output.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:])

    def wait(self, seconds: float = _PATIENCE) -> int:
        """Wait for the end of the run."""
        assert self._driver is not None
        try:
            return self._driver.wait(seconds)
        except subprocess.TimeoutExpired:
            said = self.said()
            self.kill()
            raise JobError(f"the job did not end within {seconds:g} seconds; it said:\n{said}") from None

    def stop(self) -> float:
        """Ask the job to end (SIGTERM), and return how many seconds that took."""
        assert self._driver is not None
        self._note()
        began = time.monotonic()
        self._driver.terminate()
        code = self.wait()
        if code:
            raise JobError(f"the job ended with code {code} when it was asked to stop; it said:\n{self.said()}")
        return time.monotonic() - began

    def kill(self) -> None:
        """End everything at once, as a power cut would."""
        _signal(self._note(), signal.SIGKILL)
        if self._driver is not None:
            self._driver.wait()

    def kill_driver(self) -> None:
        """End the driver; Spark notices and ends."""
        assert self._driver is not None
        self._note()
        self._driver.kill()
        self._driver.wait()

    def kill_worker(self, random: Random) -> None:
        """End one of the Python processes that do the work."""
        deadline = time.monotonic() + _PATIENCE
        # The awaited epoch may have been the last one of a Spark whose driver had died, while this run has yet to begin.
        while not (workers := self._workers()) and self.running and time.monotonic() < deadline:
            time.sleep(_LOOK)
        if not workers and self.running:
            raise JobError(f"the job has no Python worker; it said:\n{self.said()}")
        if workers:
            _signal([random.choice(sorted(workers))], signal.SIGKILL)

    def _workers(self) -> list[int]:
        found = processes()
        return [pid for pid in self._note() if sum(_FORK_SERVER in command for command in _ancestry(pid, found)) == _GENERATIONS]

    def pause(self, seconds: float) -> None:
        """Stop the whole job for a while, then resume it."""
        stopped = self._note()
        _signal(stopped, signal.SIGSTOP)
        time.sleep(seconds)
        _signal(stopped, signal.SIGCONT)

    def freeze_spark(self) -> set[int]:
        """Stop Spark and its workers while their driver dies; returns them, to be woken later."""
        assert self._driver is not None
        frozen = self._stopped()
        # A process that is stopped while it holds a lock of the log would also block the next run.
        while holders(frozen):
            _signal(frozen, signal.SIGCONT)
            time.sleep(_LOOK)
            frozen = self._stopped()
        self.kill_driver()
        return frozen

    def _stopped(self) -> set[int]:
        assert self._driver is not None
        found = self._note() - {self._driver.pid}
        _signal(found, signal.SIGSTOP)
        return found

    def close(self) -> None:
        """End everything that is left."""
        self.kill()
        deadline = time.monotonic() + _PATIENCE
        while (left := self._started & processes().keys()) and time.monotonic() < deadline:
            _signal(left, signal.SIGKILL)
            time.sleep(_LOOK)

    def _note(self) -> set[int]:
        """Every process of the present run. They are recorded, since a process that has lost its parent can no longer be found."""
        if self._driver is None:
            return set()
        found = descendants(self._driver.pid)
        self._started |= found
        return found


def wake(frozen: Iterable[int]) -> None:
    """Resume processes that were stopped."""
    _signal(frozen, signal.SIGCONT)


def descendants(pid: int) -> set[int]:
    """A process and all its descendants."""
    parents = {child: parent for child, (parent, _) in processes().items()}
    found = {pid} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def processes() -> dict[int, tuple[int, str]]:
    """Every live process: its parent and its command."""
    # Whole commands, however few columns a terminal has.
    command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
    lines = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    return {int(pid): (int(parent), " ".join(command)) for pid, parent, status, *command in lines if not status.startswith("Z")}


def _ancestry(pid: int, found: dict[int, tuple[int, str]]) -> list[str]:
    """The commands of a process, its parent, and so on; empty for one that does not exist."""
    commands = []
    while pid in found:
        pid, command = found[pid]
        commands.append(command)
    return commands


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
