"""The display of a run's progress on stderr: one line updated in place on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from headrace.core.clock import Clock, to_datetime
from headrace.jobs.facts.progress import Progress

Show = Callable[[Progress], None]


@contextmanager
def display(job: str, clock: Clock, *, as_json: bool = False) -> Iterator[Show]:
    """Shows the progress of a run in the main thread; in another thread nothing is shown."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda progress: None
        return
    if as_json or not sys.stderr.isatty():
        yield ProgressLines(job, clock, sys.stderr, as_json=as_json).show
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(f"{job}   starting Spark") as status:
        yield lambda progress: status.update(escape(f"{job}   {progress}   Ctrl-C stops"))


class ProgressLines:
    """Writes a line whenever facts have been read again, except the first time, when there is nothing to show yet."""

    def __init__(self, job: str, clock: Clock, out: TextIO, *, as_json: bool) -> None:
        self._job, self._clock, self._out, self._as_json = job, clock, out, as_json
        self._round = 0

    def show(self, progress: Progress) -> None:
        if progress.round <= self._round:
            return
        self._round = progress.round
        at = to_datetime(self._clock.now()).replace(microsecond=0)
        if self._as_json:
            line = json.dumps({"job": self._job, "at": at.isoformat().replace("+00:00", "Z"), **progress.to_json()}, ensure_ascii=False)
        else:
            line = f"{at:%Y-%m-%d %H:%M:%S} {self._job}   {progress}"
        self._out.write(f"{line}\n")
        self._out.flush()
