"""The top in a whole app: over shards, epochs and restarts it is that of all rows, and windows leave nothing behind."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver
from tests.support.examples import INNER_LOOP, seeds
from tests.support.streams import SCHEMA, START


@pytest.mark.parametrize("per", [(), ("team",)], ids=["of all", "per team"])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_top_colocated_with_its_table_follows_every_rise_and_fall(shards: int, per: tuple[str, ...]) -> None:
    for seed in seeds(3):
        chance = random.Random(seed)
        app = Declaration("beside")
        points = app.stream("points", "player string, team string, points double", key="player")
        scores = points.group(["team", "player"], ttl=None).agg(score="sum(points)")
        app.view("best", scores.top(3, by="score", per=per))
        ranked = scores.top(3, by="score", per=per, rank="place")
        app.view("ranked", ranked)
        # A row whose place changes is retracted here, too.
        app.view("places", ranked.group("place", ttl=None).agg(rows="count(*)", score="sum(score)"))
        totals, players = Counter[tuple[str, str | None]](), chance.choice([5, 40, 400])
        with TestDriver(app, shards=shards) as driver:
            for _ in range(5 if INNER_LOOP else 12):
                leaders = [who for who, _ in totals.most_common(chance.randrange(players))] if chance.random() < 0.5 else []
                others = [(chance.choice("ab"), f"p{chance.randrange(players):03}" if chance.random() < 0.95 else None) for _ in range(60)]
                sent = [(who, chance.randrange(-40, -5)) for who in leaders] + [(who, chance.randrange(-9, 9) / 4) for who in others]
                for who, some in sent:
                    totals[who] += some
                batch = [{"team": team, "player": player, "points": some} for (team, player), some in sent]
                for part in (batch[::2], batch[1::2]) if chance.random() < 0.5 else (batch,):
                    driver.send("points", part)
                shown = {(row["team"], row["player"]): row["score"] for row in driver.rows("best")}
                assert shown == _best(totals, 3, per), f"seed {seed}"
                places = {(row["team"], row["player"]): row["place"] for row in driver.rows("ranked")}
                found = [list(_best(totals, 3, each)) for each in ([("a",), ("b",)] if per else [()])]
                assert places == {who: place for mine in found for place, who in enumerate(mine, 1)}, f"seed {seed}"
                counted = {row["place"]: row["rows"] for row in driver.rows("places")}
                assert counted == Counter(places.values()), f"seed {seed}"
                if chance.random() < 0.3:
                    driver.restart()
        assert [step["rows"] <= len(totals) for step in driver.state()] == [True] * len(driver.state())


def _best(totals: Counter[tuple[str, str | None]], count: int, per: tuple[str, ...]) -> dict[tuple[str, str | None], float]:
    found = {}
    for team in {(): [None], ("team",): "ab"}.get(per, per):
        mine = [(who, score) for who, score in totals.items() if team in (None, who[0])]
        mine.sort(key=lambda pair: (-pair[1], pair[0][0], pair[0][1] is not None, pair[0][1] or ""))
        found |= dict(mine[:count])
    return found


def test_a_score_that_cannot_be_computed_any_more_leaves_the_top() -> None:
    app = Declaration("overflow")
    scores = app.stream("points", "player string, points bigint", key="player").group("player", ttl=None).agg(score="sum(points)")
    app.view("best", scores.top(1, by="score"))
    with TestDriver(app) as driver:
        driver.send("points", [{"player": "ada", "points": 2**63 - 1}, {"player": "bob", "points": 1}])
        assert [row["player"] for row in driver.rows("best")] == ["ada"]
        driver.send("points", [{"player": "ada", "points": 1}])
        assert [row["player"] for row in driver.rows("best")] == ["bob"]
        driver.send("points", [{"player": "ada", "points": -1}])
        assert [row["player"] for row in driver.rows("best")] == ["ada"]


def test_a_table_that_others_read_too_is_still_a_whole_changelog() -> None:
    app = Declaration("both")
    scores = app.stream("points", "player string, points int", key="player").group("player", ttl=None).agg(score="sum(points)")
    app.view("best", scores.top(1, by="score"))
    app.view("changes", scores.to_stream(), key=["player", "op"])
    with TestDriver(app) as driver:
        driver.send("points", [{"player": "ada", "points": 3}, {"player": "bob", "points": 1}])
        driver.send("points", [{"player": "ada", "points": -3}])
        assert [row["player"] for row in driver.rows("best")] == ["bob"]
        assert {(row["player"], row["op"], row["score"]) for row in driver.rows("changes")} == {
            ("ada", "insert", 3), ("bob", "insert", 1), ("ada", "update", 0),
        }  # fmt: skip


def test_a_key_that_is_forgotten_leaves_the_top_colocated_with_its_table() -> None:
    app = Declaration("ttl")
    stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded("0s"))
    latest = stream.select("key", "value", "at").to_table("key", ttl="1 minute")
    app.view("best", latest.top(1, by="value"))
    with TestDriver(app, shards=1) as driver:
        driver.send("records", [{"key": "a", "value": 9, "at": START}, {"key": "b", "value": 5, "at": START + timedelta(seconds=50)}])
        assert [row["key"] for row in driver.rows("best")] == ["a"]
        driver.send("records", [{"key": "c", "value": 1, "at": START + timedelta(seconds=61)}])
        assert [row["key"] for row in driver.rows("best")] == ["b"]


def test_a_top_says_in_whose_tasks_it_works() -> None:
    app = Declaration("words")
    scores = app.stream("points", "player string, points int", key="player").group("player", ttl=None).agg(score="sum(points)")
    app.view("best", scores.top(5, by="score"))
    said = str(explained(app.plan()))
    assert "evaluated by headrace, in the tasks of 'points.group', because all rows that it may need are there" in said


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


def test_rows_that_are_not_kept_because_better_ones_are_in_front_count_as_filtered() -> None:
    app = Declaration("counts")
    scores = app.stream("points", "player int, points int", key="player").group("player", ttl=None).agg(score="sum(points)")
    app.view("best", scores.top(1, by="score"))
    with TestDriver(app, shards=1) as driver:
        driver.send("points", [{"player": player, "points": player} for player in range(100)])
        # Ten who stay far behind, one who is in front already, and one who comes there.
        driver.send("points", [{"player": player, "points": 1} for player in (*range(10), 99)] + [{"player": 500, "points": 95}])
        (group, shards, best) = [step for step in driver.accounting() if ".group" in str(step["step"])]
    assert (group["in"], group["out"], group["filtered"]) == (112, 112, 0)
    assert (shards["in"], shards["out"], shards["filtered"]) == (112, 102, 10)
    assert best["in"] == best["out"]
