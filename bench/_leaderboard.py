"""The leaderboard: points of very many players, the best hundred kept live; how long a record takes until the board shows it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _payments import append, payments
from _spark_job import JobSide
from _watching import Watcher

import headrace as hr
from headrace.api.stream import Stream
from headrace.log.consumer import Consumer

_TICK = 0.1
# The one player whose score counts its own records, far above all others.
_MARK, _FAR = 10**12, 10**9
# In the first seconds the JVM compiles what it runs most.
_WARM = 60


def board(points: Stream) -> Stream:
    return points.group("card", ttl=None).agg(score="sum(amount)").top(100, by="score")


@dataclass(frozen=True)
class Held:
    """What was seen at a rate: how many records a second were sent in truth, and the waits until marks were shown."""

    rate: int
    sent: float
    p50: float
    p99: float
    marks: int

    @property
    def in_time(self) -> bool:
        """Whether every mark was seen, nearly all within two seconds, and the sender kept its pace."""
        return self.p99 < 2 and self.sent > 0.97 * self.rate


def held(side: JobSide, players: int, rate: int, seconds: float) -> Held:
    """Let each player have some points, then send at an even rate and watch the board."""
    topic = f"points-{rate}"
    app, view = side.app(topic, board)
    append(app.log, topic, _everybody(players))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        query = side.start(app, Path(checkpoint), None, None)
        watcher = _Marks(app.log.consumer(view))
        try:
            # The players' first points are no part of what is held.
            query.processAllAvailable()
            marks, sent = _Sender(app, topic, players, rate).send(seconds)
            watcher.wait_for(max(marks))
        finally:
            query.stop()
            watcher.stop()
    app.log.delete_topic(view)
    app.log.delete_topic(topic)
    waits = sorted(watcher.seen_at(mark) - at for mark, at in marks.items())
    cuts = statistics.quantiles(waits, n=100)
    return Held(rate, sent, cuts[49], cuts[98], len(waits))


def _everybody(players: int) -> Iterator[pa.Table]:
    now = int(time.time() * 1e6)
    for first in range(0, players, 500_000):
        cards = np.arange(first, min(players, first + 500_000))
        yield payments(cards, np.full(len(cards), 4), np.full(len(cards), now))


@dataclass(frozen=True)
class _Sender:
    """Sends points at an even rate, and every tick a mark: a record of the one player whose score counts its own records."""

    app: hr.App
    topic: str
    players: int
    rate: int

    def send(self, seconds: float) -> tuple[dict[int, float], float]:
        """Until the job is warm, then for `seconds`; gives when each mark was sent, and the rate that was kept."""
        marks: dict[int, float] = {}
        number, started = 0, time.time()
        begin = started + _WARM
        with self.app.log.producer(acks="1") as producer:
            while (now := time.time()) < begin + seconds:
                number += 1
                producer.send_table(self.topic, self._points(number, now))
                if now >= begin:
                    marks[number] = now
                time.sleep(max(0.0, started + number * _TICK - time.time()))
            return marks, len(marks) * self.rate * _TICK / (time.time() - begin)

    def _points(self, number: int, now: float) -> pa.Table:
        random, each = np.random.default_rng(number), int(self.rate * _TICK)
        cards = np.append(random.integers(0, self.players, each), _MARK)
        quarters = np.append(random.integers(1, 40, each), 4 * (_FAR if number == 1 else 1))
        return payments(cards, quarters, np.full(each + 1, int(now * 1e6)))


class _Marks(Watcher):
    """Notes when each mark was first to be seen on the board."""

    def __init__(self, consumer: Consumer) -> None:
        self._seen: list[tuple[int, float]] = []
        super().__init__(consumer, ["card", "score"])

    def take(self, row: dict[str, Any], now: float) -> None:
        if row["card"] == str(_MARK) and row["score"] is not None:
            self._seen.append((int(row["score"]) - _FAR + 1, now))

    def saw(self, count: int) -> bool:
        return bool(self._seen) and self._seen[-1][0] >= count

    def seen_at(self, mark: int) -> float:
        """When a mark was shown, or a later one that holds it; never: as late as can be."""
        return next((at for number, at in self._seen if number >= mark), time.time())
