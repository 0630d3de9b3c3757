"""A job that goes on with another number of shards: every scenario, with its state moved before each action."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.testing.driver import TestDriver
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario
from tests.support.examples import seeds

FILES = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))


class Rescaled:
    """A driver whose state moves before each epoch, and is then read again from what is stored."""

    def __init__(self, driver: TestDriver) -> None:
        self._driver = driver
        self._shards = cycle([3, 1, 7, 2, 5])

    def __getattr__(self, name: str) -> object:
        if name in ("send", "wait", "flush", "end"):
            self._driver.rescale(next(self._shards))
            self._driver.restart()
        return getattr(self._driver, name)


@pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_scenario_gives_the_same_results_when_its_state_moves_before_each_epoch(file: Path) -> None:
    scenario = Scenario.load(file)
    app = Declaration(scenario.name)
    scenario.declare(app)
    with TestDriver(app, partitions=scenario.partitions, starts_at=scenario.starts_at) as driver:
        assert perform(scenario, Rescaled(driver)) > 0


STEPS: dict[str, Callable[[Stream], Stream]] = {
    "best of a table": lambda clicks: clicks.group("user", ttl="1 hour").agg(total="sum(price)").top(3, by="total"),
    "best of each page": lambda clicks: clicks.group(["page", "user"], ttl=None).agg(n="count(*)").top(2, by="n", per="page"),
    "best of facts": lambda clicks: clicks.top(3, by="price", per="page", rank="place"),
    "best of a window": lambda clicks: (
        clicks.window(hr.tumbling("1 minute"), by="user").agg(n="count(*)").emit(until="2 minutes").top(2, by="n", per="window")
    ),
    "sliding with corrections": lambda clicks: (
        clicks.window(hr.sliding("1 minute"), by="user").agg(n="count(*)", total="sum(price)").emit(until="1 minute")
    ),
    "a table of a table": lambda clicks: clicks.group("user", ttl="1 hour").agg(last="max(at)", n="count(*)").to_table("n"),
    "each with the one before": lambda clicks: clicks.with_previous("price", by="user", ttl="1 minute").to_table("user"),
}


JOINS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "within a time": lambda clicks, buys: clicks.join_within(buys, on="user", within="30 seconds", how="full").to_table("user"),
    "with a table": lambda clicks, buys: clicks.join(buys.to_table("user"), on="user", how="left").to_table("user"),
    "with a table everywhere": lambda clicks, buys: clicks.join(buys.to_table("user"), on="user", broadcast=True).to_table("user"),
    "as of a time": lambda clicks, buys: clicks.join(buys.to_table("user").as_of("at", history="1 hour"), on="user", how="left").to_table(
        "user"
    ),
    "of two tables": lambda clicks, buys: clicks.to_table("user").join(buys.to_table("user"), on="user", how="full", ttl=None),
    "by a foreign key": lambda clicks, buys: clicks.to_table("user").join(buys.to_table("page"), on="page", how="left", ttl=None),
}


def _both(name: str) -> TestDriver:
    app = Declaration("moving")
    columns, rule = "user string, page string, price bigint, at timestamp", hr.bounded("20 seconds", idle="1 minute")
    clicks, buys = (app.stream(one, columns, time="at", watermark=rule, late="drop") for one in ("clicks", "buys"))
    if name in STEPS:
        app.view("results", STEPS[name](clicks.union(buys)))
    else:
        app.view("results", JOINS[name](clicks, buys))
    return TestDriver(app, shards=3)


@pytest.mark.parametrize("name", [*STEPS, *JOINS])
@pytest.mark.parametrize("seed", seeds(16))
def test_random_records_give_the_same_rows_whatever_the_shards_were(name: str, seed: int) -> None:
    chance = random.Random(seed)
    drivers = [_both(name), _both(name)]
    still, moving = drivers
    for epoch in range(12):
        rows = [
            {
                "user": chance.choice("abcdefghijklmnop"), "page": chance.choice("xyz"), "price": chance.randint(-5, 9),
                "at": f"2026-01-01T12:{epoch // 2:02}:{chance.randint(0, 59):02}Z",
            }
            for _ in range(chance.randint(1, 12))
        ]  # fmt: skip
        stream = chance.choice(["clicks", "buys"])
        if chance.random() < 0.5:
            moving.rescale(chance.randint(1, 9))
        if chance.random() < 0.3:
            moving.restart()
        for driver in drivers:
            driver.send(stream, rows)
        assert moving.rows("results") == still.rows("results")
    for driver in drivers:
        driver.end()
    assert moving.rows("results") == still.rows("results")
