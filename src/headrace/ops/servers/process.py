"""A server process that logs to a file, takes signals by name, and never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from headrace.core.errors import ConnectorError

_POLL_SECONDS = 0.02
_TAIL_LINES = 30


class ServerProcess:
    """Starts `command` as often as asked, one process at a time; each start has a log file of its own.

    A watchdog kills the server, and removes `scratch` if given, when this Python process dies without `close`.
    """

    def __init__(self, name: str, command: Sequence[str], *, logs: Path, scratch: Path | None = None) -> None:
        self.name = name
        self._command = list(command)
        self._logs = logs
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog = _start_watchdog(scratch)

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_file(self) -> Path:
        """The output of the latest start, standard output and error."""
        return self._logs / f"{self.name}-{self._starts}.log"

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        if self.alive:
            raise ConnectorError(f"{self.name} already runs as process {self.pid}", hint="stop() or kill() it first")
        self._starts += 1
        with self.log_file.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # a Ctrl-C at the terminal is for the test, not for its server
            )
        self._guard(str(self._process.pid))

    def wait_until(self, ready: Callable[[str], bool], *, within: timedelta) -> None:
        """Return once `ready` accepts the log so far; a server that dies or is late is an error with the end of the log."""
        deadline = time.monotonic() + within.total_seconds()
        while not ready(self.log_text()):
            try:
                code = self._running().wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                self.kill()
                raise self._failure(f"was not ready within {within.total_seconds():g} seconds") from None
            raise self._failure(f"ended with code {code} before it was ready")

    def log_text(self) -> str:
        """The log of the latest start; empty before the first one."""
        return self.log_file.read_text(errors="replace") if self._starts else ""

    def pause(self) -> None:
        """Stop the process in its tracks (SIGSTOP): connections stay open, nothing answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would; does nothing if it has ended."""
        self._end(signal.SIGKILL, timedelta(seconds=30))

    def stop(self, within: timedelta = timedelta(seconds=30), how: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to shut down (by SIGTERM, or its own way), and kill it if it takes longer than `within`."""
        try:
            self._end(how, within)
        except subprocess.TimeoutExpired:
            self.kill()

    def detach(self) -> None:
        """Let the server continue when this Python process ends; the object starts nothing afterwards."""
        self._guard("done")
        self._watchdog.communicate()
        # As if it had been waited for: it is no longer this process's child.
        self._running().returncode = 0

    def close(self) -> None:
        """Kill what still runs and end the watchdog; the object starts nothing afterwards."""
        self.kill()
        if self._watchdog.poll() is None:
            self._guard("done")
        self._watchdog.communicate()

    def _end(self, how: signal.Signals, within: timedelta) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.send_signal(signal.SIGCONT)
        self._process.wait(within.total_seconds())
        self._process = None
        self._guard("")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ConnectorError(f"{self.name} is not running", hint="start() it first")
        return self._process

    def _guard(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{line}\n".encode())
        self._watchdog.stdin.flush()

    def _failure(self, fact: str) -> ConnectorError:
        tail = "\n".join(self.log_text().splitlines()[-_TAIL_LINES:])
        return ConnectorError(f"{self.name} {fact}; the end of {self.log_file}:\n{tail}")


def _start_watchdog(scratch: Path | None) -> subprocess.Popen[bytes]:
    # By file, isolated and without site-packages: it starts in 20 ms, and works even while the package is being changed.
    program = Path(__file__).with_name("watchdog.py")
    arguments = [str(scratch)] if scratch else []
    return subprocess.Popen([sys.executable, "-I", "-S", str(program), *arguments], stdin=subprocess.PIPE, start_new_session=True)
