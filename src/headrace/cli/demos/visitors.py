"""Visitors of a shop: a process that writes their page views to the log, at a steady rate and a little out of order.

Phones that were offline report some views too late, and a broken one sends views without a time.

It ends when its standard input does, so that it never outlives the process that started it.
"""

from __future__ import annotations

import select
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.log import Log, Topic

TOPIC = "page_views"
COLUMNS = "url string, user string, viewed_at timestamp"
DISORDER_SECONDS = 5.0
_OFFLINE, _BROKEN = 1 / 4_000, 1 / 40_000
_OFFLINE_SECONDS = (75.0, 240.0)
_TICK = 0.05
_USERS = 50_000
_SKEW = 1.1
_PLACES = {"/": 1, "/search": 1, "/cart": 1, "/checkout": 1, "/product": 120, "/category": 24, "/help": 12, "/blog": 40}


def urls() -> list[str]:
    """The pages of the shop, the most visited first."""
    pages = [place if count == 1 else f"{place}/{number}" for place, count in _PLACES.items() for number in range(1, count + 1)]
    # A fixed shuffle below the front pages, so that categories and products mix as they do.
    tail = pages[4:]
    np.random.default_rng(7).shuffle(tail)
    return pages[:4] + tail


def create(log: Log) -> Topic:
    """The topic of page views. An hour of them is kept."""
    return log.create_topic(
        TOPIC, partitions=2, schema=COLUMNS, key="url", time="viewed_at",
        config={"retention.ms": 3_600_000, "segment.bytes": 16 * 1024 * 1024}, exist_ok=True,
    )  # fmt: skip


class Visitors:
    """Makes page views: URLs by Zipf's law, each view reported up to a few seconds after it happened."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._urls = pa.array(urls())
        weights = 1 / np.arange(1, len(self._urls) + 1) ** _SKEW
        self._shares = weights / weights.sum()

    def views(self, count: int, now: float) -> pa.Table:
        """A number of views that become known now; most are fresh, a few are late, and very few have no time."""
        delays = np.minimum(self._random.exponential(0.4, count), DISORDER_SECONDS)
        offline = self._random.random(count) < _OFFLINE
        delays[offline] = self._random.uniform(*_OFFLINE_SECONDS, int(offline.sum()))
        broken = self._random.random(count) < _BROKEN
        moments = ((now - delays) * 1_000_000).astype(np.int64)
        chosen = self._random.choice(len(self._urls), count, p=self._shares)
        users = self._random.integers(0, _USERS, count)
        return pa.table(
            {
                "url": self._urls.take(pa.array(chosen)),
                "user": pa.array([f"user-{number}" for number in users.tolist()]),
                "viewed_at": pa.array(moments, TIMESTAMP, mask=broken),
            }
        )


def main(home: str, rate: str, seed: str) -> None:
    visitors, started, sent = Visitors(int(seed)), time.monotonic(), 0
    with Log(Path(home) / "log") as log, log.producer(acks="1") as producer:
        while not select.select([sys.stdin], [], [], _TICK)[0]:
            due = int((time.monotonic() - started) * float(rate)) - sent
            if due > 0:
                producer.send_table(TOPIC, visitors.views(due, time.time()))
                sent += due


if __name__ == "__main__":
    main(*sys.argv[1:])
