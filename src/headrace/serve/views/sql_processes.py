"""The processes that answer SQL, as the server uses them: started when needed, and replaced when one is lost.

Rows are not sent to them. A run of rows is written once to memory that both sides map, when a query first needs it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from headrace.serve.http.problems import Problem
from headrace.serve.views.sql import SqlQuestion, question_of
from headrace.serve.views.sql_limits import FILES_AT_ONCE, GRACE, TOO_LONG, SqlLimits
from headrace.serve.views.table import TableSnapshot

_WORKER = "headrace.serve.views.sql_worker"
# Seconds after which a process that was not ended by the system is ended by the server.
_LOST = 10.0


@dataclass(frozen=True)
class SqlResult:
    """The rows of a query; `complete` is false if there were more than the limit."""

    table: pa.Table
    complete: bool
    epochs: dict[str, int]


class SqlProcesses:
    """Answers queries; as many at once as there are callers."""

    def __init__(self, limits: SqlLimits) -> None:
        self._limits = limits
        self._idle, self._working = list[_Worker](), set[_Worker]()
        self._closed = False
        self._lock = threading.Lock()

    def run(self, text: str, find: Callable[[str], TableSnapshot]) -> SqlResult:
        """Answer a query; `find` returns a view by its name."""
        question = question_of(text, find)
        with self._lent() as worker:
            table, complete = worker.ask(question, self._limits)
        return SqlResult(table, complete, {name: snapshot.epoch for name, snapshot in question.snapshots.items()})

    def close(self) -> None:
        """End all processes, also those at work."""
        with self._lock:
            self._closed = True
            for worker in self._working:
                worker.kill()
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    @contextmanager
    def _lent(self) -> Iterator[_Worker]:
        """A process for one query; if it is lost, the next query gets another one."""
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker()
            self._working.add(worker)
        kept = False
        try:
            yield worker
            kept = True
        except Problem:
            kept = not worker.lost
            raise
        finally:
            with self._lock:
                self._working.discard(worker)
                kept = kept and not self._closed
                if kept:
                    self._idle.append(worker)
            if not kept:
                worker.end()


class _Worker:
    """One process."""

    def __init__(self) -> None:
        self.lost = False
        self._socket, other = socket.socketpair()
        # No variable of the server's environment is needed, and some may be secret.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if (libraries := os.environ.get("LD_LIBRARY_PATH")) is not None:
            environment["LD_LIBRARY_PATH"] = libraries
        with other:
            # Not in the group of the terminal's processes, all of which Ctrl-C interrupts.
            self._process = subprocess.Popen(
                # -P: modules in the working directory, such as an app's own, are not those that it imports.
                [sys.executable, "-P", "-m", _WORKER, str(other.fileno())],
                stdin=subprocess.DEVNULL, env=environment, pass_fds=[other.fileno()], start_new_session=True,
            )  # fmt: skip
        self._answers = self._socket.makefile("rb")

    def ask(self, question: SqlQuestion, limits: SqlLimits) -> tuple[pa.Table, bool]:
        """The rows of a query, and whether these are all."""
        self._socket.settimeout(limits.seconds + GRACE + _LOST)
        try:
            self._send(question, limits)
            told: dict[str, Any] = json.loads(self._answers.readline())
            if "complete" in told:
                return pa.ipc.open_stream(self._answers).read_all(), told["complete"]
        except (OSError, ValueError) as error:
            self.lost = True
            raise self._ended(limits) from error
        raise Problem(told["status"], told["fact"], hint=told["hint"])

    def _send(self, question: SqlQuestion, limits: SqlLimits) -> None:
        parts = {name: snapshot.shared() for name, snapshot in question.snapshots.items()}
        files = list(chain.from_iterable(chain.from_iterable(parts.values())))
        asked = {
            "text": question.text, "views": {name: len(shared) for name, shared in parts.items()}, "files": len(files),
            "seconds": limits.seconds, "rows": limits.rows, "memory": limits.memory, "process": limits.process, "answer": limits.answer,
            "threads": limits.threads,
        }  # fmt: skip
        content = json.dumps(asked).encode()
        self._socket.sendall(len(content).to_bytes(8) + content)
        for first in range(0, len(files), FILES_AT_ONCE):
            socket.send_fds(self._socket, [b" "], [file.descriptor for file in files[first : first + FILES_AT_ONCE]])

    def _ended(self, limits: SqlLimits) -> Problem:
        """The reason why it ended: its time is over, or the system gives it no more memory."""
        try:
            ended_by = -self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            ended_by = signal.SIGALRM
        if ended_by == signal.SIGALRM:
            return Problem(408, TOO_LONG.format(limits.seconds))
        return Problem(413, f"the query needs more than {limits.process:,} bytes of memory", hint="ask for fewer rows or shorter values")

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self.kill()
        self._process.wait()
        self._answers.close()
        self._socket.close()
