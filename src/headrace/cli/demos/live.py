"""A demo that runs: a process that writes, a job that reads, and figures of both until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Generic, Protocol, TypeVar

from headrace.app import App
from headrace.cli.demos.job_process import JobProcess
from headrace.core.errors import JobError

_LOOK = 0.25
_PATIENCE = 120.0


class DemoFigures(Protocol):
    """The figures that every demo shows."""

    @property
    def seconds(self) -> float: ...

    @property
    def written(self) -> int: ...

    @property
    def lag_rows(self) -> int: ...

    def row(self) -> dict[str, object]: ...


S = TypeVar("S", bound=DemoFigures)


class LiveDemo(ABC, Generic[S]):
    """One run of a demo, in a `with` block; leaving it ends every process that it started.

    `writer` is the module of the process that writes to `topic`; its arguments are the home, the rate and a seed. The module of `declare`
    declares the app.
    """

    records: str
    """The records that it reads, in words."""

    def __init__(self, app: App, declaring: ModuleType, writer: ModuleType, *, topic: str, rate: float) -> None:
        self.app, self._declaring, self._writer, self._rate = app, declaring.__name__, writer.__name__, rate
        # Never polled: its lag is all that was written since the start.
        self._written = app.log.consumer(topic, start="end")

    @abstractmethod
    def figures(self) -> S:
        """The present figures."""

    def look(self) -> S:
        """The present figures of a demo that runs; a job that was killed is running again after this."""
        self._refuse_failures()
        return self.figures()

    def __enter__(self) -> LiveDemo[S]:
        self._started = time.monotonic()
        command = [sys.executable, "-m", self._writer, str(self.app.settings.home), str(self._rate), str(time.time_ns())]
        self._writing = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self.job = JobProcess(self.app, self._declaring)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_writing()
        self.job.stop()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._started

    @property
    def written(self) -> int:
        """How many records have been written since the start."""
        return sum(self._written.lag().values())

    def stop_writing(self) -> None:
        """Stop the writer; what was written is read to its end."""
        if self._writing.stdin is not None:
            self._writing.stdin.close()
        self._writing.wait()

    def looks(self, *, seconds: float | None) -> Iterator[S]:
        """Updates until Ctrl-C; with `seconds`, until that time has passed, there were records, and all of them are read."""
        with _interrupted() as stop:
            deadline = None
            while not stop.wait(_LOOK):
                figures = self.look()
                yield figures
                if deadline is not None and figures.lag_rows == 0:
                    return
                if seconds is not None and deadline is None and figures.seconds >= seconds and figures.written:
                    self.stop_writing()
                    deadline = figures.seconds + _PATIENCE
                if deadline is not None and figures.seconds > deadline:
                    raise JobError(
                        f"{figures.lag_rows:,} {self.records} were not read within {_PATIENCE:.0f} seconds", hint="headrace doctor"
                    )

    def _refuse_failures(self) -> None:
        error = self.job.error
        if error is not None:
            raise error
        if self._writing.poll():
            raise JobError(f"the process that writes {self.records} ended with code {self._writing.returncode}")


@contextmanager
def _interrupted() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, for as long as the block lasts."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
