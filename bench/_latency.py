"""Latency: from the append of a record until its result is in the view, at a given rate."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _payments import payments
from _runs import Epoch, Run, epoch
from _spark_job import JobSide, grouped, records
from _watching import Watcher

import headrace as hr
from headrace.log.consumer import Consumer

_CARDS = 1_000
_TICK = 0.01
_WARM_EPOCHS = 10


@dataclass(frozen=True)
class Latency:
    """What was seen: seconds by percentile, and the phases of the epochs meanwhile."""

    p50: float
    p99: float
    seen: int
    sent: int
    phases: dict[str, float]
    epoch_seconds: float


def latency(side: JobSide, topic: str, rate: int, seconds: float) -> Latency:
    """Send at an even rate to a job that counts per card, and watch its view; what is sent while it warms up does not count.

    The count of a card tells which of its records a result has seen.
    """
    app, view = side.app(topic, grouped)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = side.start(app, Path(checkpoint), None, None)
        watcher = _Counts(app.log.consumer(view))
        try:
            sent, begin = _send(app, topic, rate, lambda: len(query.recentProgress) >= _WARM_EPOCHS, seconds)
            watcher.wait_for(len(sent))
        finally:
            query.stop()
            watcher.stop()
        reports = [report for report in query.recentProgress if records(report)]
    waits = [watcher.seen[card, number] - at for (card, number), at in _numbered(sent) if (card, number) in watcher.seen and at >= begin]
    epochs: list[Epoch] = [epoch(report, records(report)) for report in reports]
    run = Run(epochs, pl.DataFrame(), 0, 0)
    cuts = statistics.quantiles(waits, n=100)
    return Latency(cuts[49], cuts[98], len(watcher.seen), len(sent), run.shares(len(epochs) // 3), run.cost(len(epochs) // 3))


def _send(app: hr.App, topic: str, rate: int, warm: Callable[[], bool], seconds: float) -> tuple[list[tuple[str, float]], float]:
    """Send at this rate until the job is warm, then for `seconds`; gives each card and when its append was asked for.

    The second value is when the job was warm.
    """
    random = np.random.default_rng(7)
    sent: list[tuple[str, float]] = []
    each, ticks, begin = int(rate * _TICK), itertools.count(), None
    with app.log.producer(acks="all") as producer:
        started = time.time()
        while begin is None or time.time() < begin + seconds:
            tick = next(ticks)
            time.sleep(max(0.0, started + tick * _TICK - time.time()))
            now = time.time()
            cards = random.integers(0, _CARDS, each)
            producer.send_table(topic, payments(cards, np.ones(each, np.int64), np.full(each, int(now * 1e6))))
            sent += [(str(card), now) for card in cards]
            if begin is None and tick % 100 == 0 and warm():
                begin = now
    return sent, begin


def _numbered(sent: list[tuple[str, float]]) -> list[tuple[tuple[str, int], float]]:
    counts: dict[str, int] = {}
    numbered = []
    for card, at in sent:
        counts[card] = counts.get(card, 0) + 1
        numbered.append(((card, counts[card]), at))
    return numbered


class _Counts(Watcher):
    """Notes when each count of each card was first to be seen."""

    def __init__(self, consumer: Consumer) -> None:
        self.seen: dict[tuple[str, int], float] = {}
        self._counts: dict[str, int] = {}
        super().__init__(consumer, ["card", "n"])

    def take(self, row: dict[str, Any], now: float) -> None:
        for number in range(self._counts.get(row["card"], 0) + 1, row["n"] + 1):
            self.seen[row["card"], number] = now
        self._counts[row["card"]] = max(row["n"], self._counts.get(row["card"], 0))

    def saw(self, count: int) -> bool:
        return len(self.seen) >= count
