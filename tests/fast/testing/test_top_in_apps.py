"""The top in a whole app: over shards, epochs and restarts it is that of all rows, and windows leave nothing behind."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.testing.driver import TestDriver
from tests.support.streams import SCHEMA, START


@pytest.mark.parametrize("shards", [1, 3])
def test_the_top_of_all_shards_is_that_of_the_whole_table(shards: int) -> None:
    app = Declaration("top")
    scores = app.stream("points", "player string, points int", key="player").group("player", ttl=None).agg(score="sum(points)")
    app.view("best", scores.top(4, by="score"))
    chance, totals = random.Random(shards), Counter[str]()
    with TestDriver(app, shards=shards) as driver:
        for _ in range(8):
            sent = [(f"p{chance.randrange(60):02}", chance.randrange(-20, 20)) for _ in range(50)]
            for player, points in sent:
                totals[player] += points
            driver.send("points", [{"player": player, "points": points} for player, points in sent])
            wanted = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
            assert [(row["player"], row["score"]) for row in driver.rows("best")] == sorted(wanted)
            driver.restart()


def test_windows_that_are_past_correction_are_not_kept() -> None:
    app = Declaration("bound")
    stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded("10s"))
    minutes = stream.window(tumbling("1 minute"), by="key").agg(total="sum(value)").emit(until="2 minutes")
    app.view("best", minutes.top(2, by="total", per="window"))
    with TestDriver(app, shards=1) as driver:
        for minute in range(0, 40, 2):
            moments = [START + timedelta(minutes=minute, seconds=second) for second in range(0, 120, 20)]
            driver.send("records", [{"key": f"k{key}", "value": key, "at": at} for at in moments for key in range(10)])
            # At most those of the minutes since two before the watermark, and what waits to be let go at once.
            assert max(step["rows"] for step in driver.state()) <= 60
        assert len(driver.rows("best")) == 2 * 39
        driver.end()
        assert [step["rows"] for step in driver.state()] == [0, 0, 0]
        assert len(driver.rows("best")) == 2 * 40
        assert {row["key"] for row in driver.rows("best")} == {"k8", "k9"}
