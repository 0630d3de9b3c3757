"""The top of facts in a whole app: records that nothing tells apart have their places, over shards, epochs and restarts."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import PlanError
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver
from tests.support.examples import INNER_LOOP, seeds
from tests.support.streams import START

Row = dict[str, Any]
BIDS = "auction string, bidder string, price double, tags array<string>, at timestamp"


def bids(app: Declaration) -> Any:
    return app.stream("bids", BIDS, time="at", watermark=bounded("1 hour"))


def some(chance: random.Random, count: int) -> list[Row]:
    """Bids on few auctions with few prices, so that there are equals, and some records that are the same to the last column."""
    made = [
        {
            "auction": chance.choice(["a", "b", "c", None]),
            "bidder": chance.choice("xyz"),
            "price": chance.choice([None, float("nan"), *map(float, range(5))]),
            "tags": [chance.choice("pq")],
            "at": START + timedelta(seconds=chance.randrange(5)),
        }
        for _ in range(count)
    ]
    return made + made[: count // 4]


def expected(rows: list[Row], count: int, per: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The group, the place, the price and the time; of equal prices and times any may be first."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if row["price"] is not None:
            groups.setdefault(row["auction"] if per else "all", []).append(row)
    found = []
    for group, mine in groups.items():
        mine.sort(key=lambda row: (-math.inf if math.isnan(row["price"]) else -row["price"], row["at"]))
        found += [(group, place, str(row["price"]), row["at"]) for place, row in enumerate(mine[:count], 1)]
    return sorted(found, key=str)


@pytest.mark.parametrize("per", [(), ("auction",)], ids=["of all", "per auction"])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_places_of_facts_are_those_of_all_that_came(shards: int, per: tuple[str, ...]) -> None:
    for seed in seeds(4):
        chance = random.Random(seed)
        count = chance.choice([1, 3, 10])
        app = Declaration("facts")
        best = bids(app).top(count, by="price", per=per, rank="place")
        app.view("best", best)
        # A record that moves to another place is retracted from the one it had.
        app.view("first", best.top(1, by="place"))
        app.view("places", best.group("place", ttl=None).agg(rows="count(*)", prices="count(price)"))
        sent: list[Row] = []
        with TestDriver(app, shards=shards, partitions=2) as driver:
            for _ in range(5 if INNER_LOOP else 10):
                batch = some(chance, chance.randrange(40))
                sent += batch
                driver.send("bids", batch)
                shown = [(row["auction"] if per else "all", row["place"], str(row["price"]), row["at"]) for row in driver.rows("best")]
                assert sorted(shown, key=str) == expected(sent, count, per), f"seed {seed}"
                counted = {row["place"]: row["rows"] for row in driver.rows("places")}
                places = [place for _, place, _, _ in shown]
                assert [row["place"] for row in driver.rows("first")] == sorted(places)[-1:], f"seed {seed}"
                assert counted == {place: places.count(place) for place in places}, f"seed {seed}"
                if chance.random() < 0.4:
                    driver.restart()


def test_which_of_equal_facts_come_first_does_not_depend_on_the_order_of_arrival() -> None:
    for seed in seeds(3):
        rows = some(random.Random(seed), 60)
        seen = []
        for _ in range(2):
            random.Random(len(seen)).shuffle(rows)
            app = Declaration("facts")
            app.view("best", bids(app).top(5, by="price", per="auction", rank="place"))
            with TestDriver(app, shards=1 + len(seen)) as driver:
                for first in range(0, len(rows), 25 + 10 * len(seen)):
                    driver.send("bids", rows[first : first + 25 + 10 * len(seen)])
                seen.append(str(driver.rows("best")))
        assert seen[0] == seen[1], f"seed {seed}"


def test_only_the_best_are_kept() -> None:
    app = Declaration("facts")
    app.view("best", bids(app).top(2, by="price", per="auction", rank="place"))
    with TestDriver(app, shards=1) as driver:
        for number in range(20):
            driver.send("bids", [{"auction": "a", "bidder": "x", "price": float(number * 7 % 11), "tags": [], "at": START}] * 50)
        assert [step["rows"] for step in driver.state() if step["step"] == "bids.top"] == [1]
        assert [(row["place"], row["price"]) for row in driver.rows("best")] == [(1, 10.0), (2, 10.0)]
        (step,) = [step for step in driver.accounting() if step["step"] == "bids.top"]
        assert (step["in"], step["out"]) == (1000, 1000)


def test_the_best_windows_of_all_time_are_a_top_of_facts() -> None:
    app = Declaration("facts")
    counts = bids(app).window(tumbling("1 minute"), by="auction").agg(n="count(*)")
    app.view("best", counts.select("auction, window_start, n").top(2, by="n", rank="place"))
    with TestDriver(app) as driver:
        for minute, bids_of_it in enumerate([3, 9, 1, 5]):
            at = START + timedelta(minutes=minute)
            driver.send("bids", [{"auction": "a", "bidder": "x", "price": 1.0, "tags": [], "at": at}] * bids_of_it)
        driver.end()
        assert [(row["place"], row["n"], row["window_start"].minute) for row in driver.rows("best")] == [(1, 9, 1), (2, 5, 3)]


def test_a_new_view_of_a_top_of_facts_begins_with_all_its_places() -> None:
    def version(*views: str) -> Declaration:
        app = Declaration("best")
        best = bids(app).top(2, by="price", per="auction", rank="place")
        for name in views:
            app.view(name, best)
        return app

    driver = TestDriver(version("old"), shards=3)
    rows = some(random.Random(1), 20)
    driver.send("bids", rows)
    driver.evolve(version("old", "new"), shards=2)
    driver.send("bids", rows[:1])
    assert list(map(repr, driver.rows("new"))) == list(map(repr, driver.rows("old")))
    assert len(driver.rows("new")) == 8


def test_windows_over_the_top_of_facts_are_refused() -> None:
    app = Declaration("facts")
    best = bids(app).top(2, by="price", per="auction", rank="place")
    app.view("windows", best.window(tumbling("1 minute")).agg(n="count(*)"))
    with pytest.raises(PlanError, match="windows over the table"):
        app.plan()


def test_a_top_of_facts_without_places_is_refused_with_the_remedy() -> None:
    app = Declaration("facts")
    app.view("best", bids(app).top(2, by="price").group("auction", ttl=None).agg(n="count(*)"))
    with pytest.raises(PlanError, match='rank="rank"'):
        app.plan()


def test_what_a_top_of_facts_keeps_is_explained() -> None:
    app = Declaration("facts")
    app.view("best", bids(app).top(2, by="price", per="auction", rank="place"))
    assert "the 2 best records of each group" in str(explained(app.plan()))
