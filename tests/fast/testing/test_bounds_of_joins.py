"""How long joins keep rows behind steps whose results come late: as long as `explain` says, and not longer."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded
from headrace.core.durations import duration
from headrace.engine.times.event_time_trace import timings
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

HOWS = ("inner", "left", "right", "full")
TICK = timedelta(microseconds=1)


def streams(app: Declaration) -> tuple[Stream, ...]:
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded("0s", idle="1 day")}
    return tuple(app.stream(name, "k string, at timestamp", **timed) for name in "abc")


def meeting(driver: TestDriver, second: float, *names: str) -> None:
    driver.send_all({name: [{"k": "x", "at": at(second)}] for name in names})


def kept(driver: TestDriver, step: str) -> int:
    (rows,) = [one["rows"] for one in driver.state() if one["step"] == step]
    return int(rows)


@pytest.mark.parametrize(("first", "second"), list(product(HOWS, HOWS)))
def test_each_side_of_a_join_behind_another_is_kept_for_as_long_as_it_says(first: str, second: str) -> None:
    app = Declaration("three")
    a, b, c = streams(app)
    two = a.join_within(b, on="k", within=("4s", "9s"), how=first)
    three = two.join_within(c, on="k", within=("3s", "8s"), how=second, suffix="_c")
    app.sink(three, LogTopic("out"), name="out")
    left, right = three.node.state_summary.bound.removesuffix(" after a row's time").split(", ")
    for names, bound in (("ab", left.removeprefix("left ")), ("c", right.removeprefix("right "))):
        with TestDriver(app, shards=1) as driver:
            meeting(driver, 100, *names)
            driver.advance(at(100) + duration(bound))
            assert kept(driver, three.name) == 1
            driver.advance(at(100) + duration(bound) + TICK)
            assert kept(driver, three.name) == 0


def test_a_version_that_may_come_late_is_kept_for_as_long_as_the_join_says() -> None:
    app = Declaration("versions")
    a, b, c = streams(app)
    table = a.join_within(b, on="k", within=("4s", "9s"), how="left").to_table("k")
    valued = c.join(table.as_of("at", history="1 minute"), on="k", suffix="_valid")
    app.sink(valued, LogTopic("out"), name="out")
    bound = valued.node.state_summary.bound.removeprefix("versions until ").removesuffix(" after the next one, the last of a key forever")
    with TestDriver(app, shards=1) as driver:
        meeting(driver, 100, "a", "b")
        meeting(driver, 200, "a", "b")
        driver.advance(at(200) + duration(bound) - TICK)
        assert kept(driver, valued.name) == 2
        driver.advance(at(200) + duration(bound))
        assert kept(driver, valued.name) == 1


def test_versions_with_a_ttl_are_valid_and_kept_for_as_long_as_the_join_says() -> None:
    app = Declaration("expiring")
    a, b, _ = streams(app)
    valued = a.join(b.to_table("k", ttl="20s").as_of("at", history="1 minute"), on="k")
    app.sink(valued, LogTopic("out"), name="out")
    bound = valued.node.state_summary.bound
    assert bound == "versions until 1 minute after the next one, and 1 minute 20 seconds after their own time at most"
    (timing,) = timings(app.plan(), "b", int(at(100).timestamp()) * 1_000_000)
    until = "until the next version of its key, to 2026-01-01 12:01:59.999999 at the latest"
    assert timing.turn == f"is the version for records of 'a' from 2026-01-01 12:01:40 {until}"
    assert timing.window_end == at(120) - TICK
    with TestDriver(app, shards=1) as driver:
        meeting(driver, 100, "b")
        driver.send("a", [{"k": "x", "at": at(120) - TICK}, {"k": "x", "at": at(120)}])
        driver.advance(at(180) - TICK)
        assert ([row["at"] for row in driver.rows("out")], kept(driver, valued.name)) == ([at(120) - TICK], 1)
        driver.advance(at(180))
        assert kept(driver, valued.name) == 0
