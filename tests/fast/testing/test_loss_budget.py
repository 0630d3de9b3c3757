"""A loss budget in whole apps: what is late is what a plain reading of the rule says, and it keeps to the budget."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.api.declaration import Declaration
from headrace.api.windows import loss_budget, tumbling
from headrace.core.columns.keys import encode_keys, partitions_of
from headrace.operators.event_time.lateness_histogram import Lateness
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.watermarks import LossBudget
from headrace.testing.driver import TestDriver
from tests.support.examples import examples

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHARE, MOST = 0.2, 30
KEYS = "abcd"
PLACE = dict(zip(KEYS, partitions_of(encode_keys([pa.array(list(KEYS))]), 2).tolist(), strict=True))
epochs = st.lists(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 60)), min_size=1, max_size=12), min_size=1, max_size=6)


class Plainly:
    """The rule, record by record: in seconds, of which each up to 30 is the edge of a bin or lies in the bin of the next edge."""

    def __init__(self) -> None:
        self.latest: dict[int, int] = {}
        self.lateness: dict[int, list[int]] = {}
        self.watermark = -1_000_000

    def take(self, key: str, second: int) -> bool:
        """Whether a record is late for its window of ten seconds."""
        place = PLACE[key]
        self.latest[place] = max(second, self.latest.get(place, second))
        self.lateness.setdefault(place, []).append(self.latest[place] - second)
        return second // 10 * 10 + 10 <= self.watermark

    def advance(self) -> None:
        self.watermark = max(self.watermark, min(self.latest[place] - self.bound(place) for place in self.latest))

    def bound(self, place: int) -> int:
        seen = self.lateness[place]
        if len(seen) * SHARE < 1:
            return MOST
        return next(bound for bound in [*EDGES, MOST] if bound == MOST or sum(late > bound for late in seen) <= len(seen) * SHARE)


# Whole seconds among the edges of the histogram; the others have the next one above.
EDGES = [*range(19), 20, 22, 24, 26, 28]


@given(epochs)
@settings(max_examples=examples(40))
def test_what_is_late_is_what_the_rule_says(batches: list[list[tuple[str, int]]]) -> None:
    app = Declaration("budget")
    readings = app.stream("readings", "key string, at timestamp", key="key", time="at", watermark=loss_budget(SHARE, max=f"{MOST}s"))
    app.view("tens", readings.window(tumbling("10s"), by="key").agg(n="count(*)"))
    plainly, driver = Plainly(), TestDriver(app, partitions=2)
    counted: Counter[tuple[str, int]] = Counter()
    late: list[tuple[str, int]] = []
    for batch in batches:
        for key, second in batch:
            if plainly.take(key, second):
                late.append((key, second))
            else:
                counted[key, second // 10 * 10] += 1
        plainly.advance()
        driver.send("readings", [{"key": key, "at": NOON + timedelta(seconds=second)} for key, second in batch])
        assert driver.watermark == NOON + timedelta(seconds=plainly.watermark)
    driver.end()
    assert sorted((row["key"], seconds(row["at"])) for row in driver.late("readings")) == sorted(late)
    assert {(row["key"], seconds(row["window_start"])): row["n"] for row in driver.rows("tens")} == counted


def seconds(moment: datetime) -> int:
    return (moment - NOON) // timedelta(seconds=1)


def test_a_stream_that_changes_loses_little_more_than_its_budget_and_waits_little_longer_than_it_must() -> None:
    rule, random = LossBudget(0.01, timedelta(minutes=10)), np.random.default_rng(3)
    progress, lost, total = StreamTime(), 0, 0
    for epoch in range(400):
        scale = 2 if epoch < 200 else 8
        times = (epoch * 500 + np.arange(500)) * 100_000 - (random.exponential(scale, 500) * 1_000_000).astype(np.int64)
        lost, total = lost + int((times < progress.watermark).sum()), total + len(times)
        high = progress.partitions[0].latest if progress.partitions else None
        progress = progress.observe({0: int(times.max())}, 0).learn(rule, {0: Lateness.of(times, high)})
        progress = progress.advance(rule, 0, lambda moment: moment)
    assert lost / total < 0.015
    # One in a hundred of what is exponential is later than 4.6 times its mean.
    assert 30 < progress.bounds(rule)[0] / 1_000_000 < 45
