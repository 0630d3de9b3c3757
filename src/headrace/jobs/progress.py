"""How a running job gets on: its epoch, its watermark, how many records it took in and how many wait."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headrace.connectors.input import Input
from headrace.core.clock import to_datetime
from headrace.core.durations import spelled
from headrace.operators.hot import HotKey, looks
from headrace.operators.time import BEGINNING, END
from headrace.operators.watermark import Progress as Reached
from headrace.plan.watermarks import LossBudget, Watermark


@dataclass(frozen=True)
class Progress:
    """A job at one moment."""

    epoch: int
    watermark: datetime | None
    taken: int
    waiting: int
    rate: float
    epoch_seconds: float | None = None
    """How long the last epoch took."""
    bounds: Mapping[str, timedelta] = field(default_factory=dict)
    """What a loss budget has chosen for each stream that has one."""
    hot_keys: Sequence[HotKey] = ()
    """Keys with a large share of the records of a step, those with the largest first."""

    def __str__(self) -> str:
        time = f"{self.watermark:%Y-%m-%d %H:%M:%S}" if self.watermark else "none yet"
        chosen = "".join(f"   {name} bounded by {spelled(bound)}" for name, bound in self.bounds.items())
        # One that all meets on one shard is worth more of the line than one with a larger share that costs nothing.
        worst = sorted(self.hot_keys, key=lambda hot: not hot.trouble)[:1]
        hot = "".join(f"   hot key {key.key} {key.share:.0%} of {key.step}" for key in worst)
        rows = f"{self.taken:,} rows   {self.rate:,.0f} rows/s   lag {self.waiting:,} rows"
        return f"epoch {self.epoch:,}   {rows}   watermark {time}{chosen}{hot}"


class Observer:
    """Reads a job's progress off Spark's reports on its epochs; `hot_keys` tells which ones it has met, and is asked now and then."""

    def __init__(
        self, inputs: Mapping[str, Input], rules: Mapping[str, Watermark | None], hot_keys: Callable[[], list[HotKey]] = list
    ) -> None:
        self._inputs, self._rules = inputs, rules
        self._ask_hot_keys, self._hot_keys, self._asked = hot_keys, list[HotKey](), 0
        self._began: int | None = None
        self._seen: tuple[float, int] | None = None
        self._rate = 0.0
        self._offset: dict[str, Any] | None = None
        self._epoch_seconds: float | None = None

    def learn(self, report: Any) -> None:
        """Take in Spark's last report; None before there is one."""
        if report is None:
            return
        if "triggerExecution" in report["durationMs"]:
            self._epoch_seconds = report["durationMs"]["triggerExecution"] / 1000
        source = report["sources"][0]
        # Before the first epoch Spark writes either nothing or the text "null".
        start, end = (json.loads(source[name] or "null") for name in ("startOffset", "endOffset"))
        if self._began is None and end is not None:
            self._began = _read(start) if start is not None else 0
        self._offset = end if end is not None else self._offset

    @property
    def epoch(self) -> int:
        return int(self._offset["epoch"]) if self._offset else 0

    @property
    def watermark(self) -> datetime | None:
        mark = self._offset["watermark"] if self._offset else BEGINNING
        return None if mark in (BEGINNING, END) else to_datetime(mark)

    @property
    def bounds(self) -> dict[str, timedelta]:
        """How far behind its records the watermark of each stream stays that learns it; the largest bound of its partitions."""
        progress = self._offset["progress"] if self._offset else {}
        learning = {name: rule for name, rule in self._rules.items() if isinstance(rule, LossBudget) and name in progress}
        chosen = {name: Reached.from_json(progress[name]).bounds(rule) for name, rule in learning.items()}
        return {name: timedelta(microseconds=max(bounds.values())) for name, bounds in chosen.items() if bounds}

    def tell(self) -> None:
        """Let the sources know what is done with."""
        positions = self._offset["positions"] if self._offset else {}
        for name, position in positions.items():
            self._inputs[name].done({int(partition): offset for partition, offset in position.items()})

    def look(self) -> Progress:
        read = _read(self._offset) if self._offset else 0
        now = time.monotonic()
        if self._seen is not None and now > self._seen[0]:
            self._rate += 0.3 * ((read - self._seen[1]) / (now - self._seen[0]) - self._rate)
        self._seen = (now, read)
        there = sum(sum(source.end().values()) for source in self._inputs.values())
        if looks(self.epoch) > self._asked:
            self._asked, self._hot_keys = looks(self.epoch), self._ask_hot_keys()
        return Progress(
            self.epoch,
            self.watermark,
            read - (self._began or 0),
            there - read,
            self._rate,
            self._epoch_seconds,
            self.bounds,
            self._hot_keys,
        )


@contextmanager
def display(job: str) -> Iterator[Callable[[Progress], None]]:
    """Shows progress as one line that is drawn anew on a terminal; elsewhere, and in a thread beside the main one, nothing is shown."""
    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(f"{job}   starting Spark") as status:
        yield lambda progress: status.update(escape(f"{job}   {progress}   Ctrl-C stops"))


def _read(offset: Mapping[str, Any]) -> int:
    return sum(sum(positions.values()) for positions in offset["positions"].values())
