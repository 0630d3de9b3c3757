"""The page view demo: visitors write, Spark counts, and a board shows both until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.cli.demos import visitors
from headrace.cli.demos.counting import LIVE, Counting, declare
from headrace.cli.demos.figures import FigureObserver, Figures
from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.jobs.start.outputs import create_outputs

_LOOK = 0.25
_PATIENCE = 120.0


class PageViews:
    """One run of the demo, in a `with` block; leaving it ends every process that it started."""

    def __init__(self, settings: Settings, *, rate: float) -> None:
        self._app = declare(settings)
        self._rate = rate
        log = self._app.log
        # The board follows the counts from before the first of them is made.
        create_outputs(log, self._app.plan(), partitions=2)
        # Never polled: its lag is all that was written since the start.
        self._views = log.consumer(visitors.TOPIC, start="end")
        self._counts = log.consumer(LIVE, start="end")
        self._observer = FigureObserver()

    def __enter__(self) -> PageViews:
        self._started = time.monotonic()
        command = [sys.executable, "-m", visitors.__name__, str(self._app.settings.home), str(self._rate), str(time.time_ns())]
        self._visitors = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self._counting = Counting(self._app)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_visitors()
        self._counting.stop()

    def stop_visitors(self) -> None:
        """Stop the visitors; what was written is counted to its end."""
        if self._visitors.stdin is not None:
            self._visitors.stdin.close()
        self._visitors.wait()

    def look(self) -> Figures:
        """The present figures."""
        self._refuse_failures()
        progress = self._counting.progress()
        self._observer.learn(self._counts.poll(timeout="0s"))
        written = sum(self._views.lag().values())
        counted = max(0, written - progress.waiting) if progress is not None and progress.epoch else 0
        return self._observer.look(time.monotonic() - self._started, written, counted, progress)

    def looks(self, *, seconds: float | None) -> Iterator[Figures]:
        """Updates until Ctrl-C; with `seconds`, until that time has passed, there were page views, and all of them are counted."""
        with _interrupted() as stop:
            deadline = None
            while not stop.wait(_LOOK):
                figures = self.look()
                yield figures
                if deadline is not None and figures.lag_rows == 0:
                    return
                if seconds is not None and deadline is None and figures.seconds >= seconds and figures.written:
                    self.stop_visitors()
                    deadline = figures.seconds + _PATIENCE
                if deadline is not None and figures.seconds > deadline:
                    raise JobError(
                        f"{figures.lag_rows:,} page views were not counted within {_PATIENCE:.0f} seconds", hint="headrace doctor"
                    )

    def _refuse_failures(self) -> None:
        error = self._counting.error
        if error is not None:
            raise error
        if self._visitors.poll():
            raise JobError(f"the visitors' process ended with code {self._visitors.returncode}")


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
