"""Joins that the tests of Spark and RisingWave work out: the same answers here, and where they differ, why."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.peer_joins import Given, Pairs, declared, named, pairs, rows
from tests.support.streams import at


def given(side: str, *keyed: tuple[int, float]) -> Given:
    """Records by key and second, called by both: L1@5."""
    return [(str(key), f"{side}{key}@{second:g}", second) for key, second in keyed]


UNMATCHED: dict[str, tuple[Pairs, Pairs]] = {
    "left": ([("L3@5", None)], [("L1@30", None)]),
    "right": ([(None, "R2@5")], [(None, "R0@30")]),
    "full": ([("L3@5", None), (None, "R2@5")], [("L1@30", None), (None, "R0@30")]),
}


@pytest.mark.parametrize("how", UNMATCHED)
def test_rows_without_a_match_leave_when_both_watermarks_have_passed(how: str) -> None:
    early, late = UNMATCHED[how]
    app = Declaration("spark")
    left, right = declared(app, "10s")
    app.sink(left.join_within(right, on="key", within="5s", how=how), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows(given("L", (1, 5), (3, 5))))
        driver.send("right", rows(given("R", (1, 10), (2, 5))))
        assert named(driver) == [("L1@5", "R1@10")]
        driver.send("right", rows(given("R", (1, 11))))
        assert named(driver) == [("L1@5", "R1@10")]
        driver.send("left", rows(given("L", (1, 7), (1, 30))))
        met = [("L1@5", "R1@10"), ("L1@7", "R1@10"), ("L1@7", "R1@11")]
        assert named(driver) == met
        driver.send("right", rows(given("R", (0, 30))))
        assert named(driver) == sorted([*met, *early], key=str)
        driver.end()
        assert named(driver) == sorted([*met, *early, *late], key=str)
        assert {step["rows"] for step in driver.state()} == {0}


WINDOWED: dict[str, Pairs] = {
    "inner": [], "left": [("L1@1", None), ("L2@2", None), ("L21@21", None)], "right": [(None, "R6@6"), (None, "R7@7")],
    "full": [("L1@1", None), ("L2@2", None), ("L21@21", None), (None, "R6@6"), (None, "R7@7")],
}  # fmt: skip


@pytest.mark.parametrize("how", WINDOWED)
def test_records_of_one_window_meet_and_one_that_comes_after_it_is_late(how: str) -> None:
    """Spark joins on the window; here it is a column, and the stretch of time is that of the window."""
    app = Declaration("spark")
    left, right = declared(app, "10s")
    left, right = left.with_columns(ten="floor(n / 10)"), right.with_columns(ten="floor(n / 10)")
    app.sink(left.join_within(right, on=["key", "ten"], within="10s", how=how), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows(given("L", *((n, n) for n in range(1, 6)))))
        driver.send("right", rows(given("R", *((n, n) for n in range(3, 8)))))
        assert named(driver) == [("L3@3", "R3@3"), ("L4@4", "R4@4"), ("L5@5", "R5@5")]
        driver.restart()
        driver.send("left", rows(given("L", (21, 21))))
        driver.send("right", rows(given("R", (22, 22))))
        driver.restart()
        driver.send("left", rows(given("L", (22, 22))))
        driver.send("left", rows(given("L", (1, 1))))
        driver.end()
        met = [("L22@22", "R22@22"), ("L3@3", "R3@3"), ("L4@4", "R4@4"), ("L5@5", "R5@5")]
        assert named(driver) == sorted([*met, *WINDOWED[how]], key=str)
        assert [row["id"] for row in driver.late("left")] == ["L1@1"]


@pytest.mark.parametrize(("how", "alone"), [("left", ["L1@1", "L2@2"]), ("inner", [])])
def test_a_row_that_no_match_can_satisfy_is_unmatched(how: str, alone: list[str]) -> None:
    left, right = given("L", (1, 1), (2, 2), (3, 3)), given("R", (3, 3), (4, 4), (5, 5))
    assert pairs(left, right, within="10s", how=how, where="n * 2 > 4") == sorted(
        [("L3@3", "R3@3"), *((one, None) for one in alone)], key=str
    )


def test_a_row_of_a_self_join_that_has_met_another_is_never_unmatched() -> None:
    app = Declaration("spark")
    left, _ = declared(app, "5s")
    joined = left.join_within(left.where("n % 2 = 0"), on="key", within=("0s", "5s"), how="left")
    app.sink(joined, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for first in (1, 6, 11):
            driver.send("left", rows(given("L", *((n, n) for n in range(first, first + 5)))))
        driver.end()
        assert named(driver) == sorted(((f"L{n}@{n}", None if n % 2 else f"L{n}@{n}") for n in range(1, 16)), key=str)


def test_a_row_before_all_others_is_unmatched_though_all_came_at_once() -> None:
    day, hour = 24 * 3600, 3600
    left: Given = [("abc", "has no join partner", 0), ("abc", "joined with A", day), ("abc", "joined with B", day + hour)]
    right: Given = [("abc", "A", day + 10), ("abc", "B", day + hour - 1), ("abc", "C", day + 2 * hour)]
    met = [("has no join partner", None), ("joined with A", "A"), ("joined with B", "B")]
    assert pairs(left, right, within="30s", how="left", bound="2 days") == met


def test_null_keys_meet_where_a_column_stands_for_null() -> None:
    """Spark's <=> lets null equal null. Here a key with a null matches nothing: a value that takes its place does."""
    sent = [("1", "L1", 1), (None, "L2", 2), ("1", "L3", 3), (None, "L4", 4), ("1", "L5", 5)]
    right: Given = [("1", "R3", 3), (None, "R4", 4), ("1", "R5", 5), ("1", "R6", 6)]
    app = Declaration("spark")
    one, two = (stream.with_columns(safe="coalesce(key, '')") for stream in declared(app))
    app.sink(one.join_within(two, on=["safe", "n"], within="10s", how="left"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows(list(sent)))
        driver.send("right", rows(right))
        driver.end()
        assert named(driver) == [("L1", None), ("L2", None), ("L3", "R3"), ("L4", "R4"), ("L5", "R5")]


def test_three_streams_meet_where_all_have_the_key() -> None:
    app = Declaration("spark")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("30s", idle="1 hour")}
    first, second, third = (app.stream(name, f"key int, {name}_value int, at timestamp", **timed) for name in ("one", "two", "three"))
    two = first.join_within(second, on="key", within="10s")
    app.sink(two.join_within(third, on="key", within="10s", suffix="_third"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for name, factor, keys in (("one", 2, (1, 5)), ("two", 3, (1, 5, 10)), ("three", 5, (5, 10))):
            driver.send(name, [{"key": key, f"{name}_value": key * factor, "at": at(key)} for key in keys])
        assert [(row["key"], row["one_value"], row["two_value"], row["three_value"]) for row in driver.rows("out")] == [(5, 10, 15, 25)]


def test_the_nearest_row_that_follows_is_the_first_match() -> None:
    """RisingWave's ASOF JOIN with <= updates the result when a nearer row comes; here the nearest is known when time has passed.

    Of rows of one time it takes that with the smallest primary key. A stream has no such key: one of them is taken, always the same.
    """
    right: Given = [("1", "4", 3), ("1", "3", 2), ("2", "6", 3), ("2", "7", 3), ("2", "5", 3), ("2", "1", 3), ("2", "2", 3)]
    left: Given = [("1", "first", 2), ("2", "second", 3)]
    found = pairs(left, right, within=("0s", "1 hour"), pick="first")
    assert [name for name, _ in found] == ["first", "second"]
    assert found[0] == ("first", "3")
    assert pairs(left, right[::-1], within=("0s", "1 hour"), pick="first") == found


def test_the_nearest_row_strictly_before_is_the_last_match_with_a_condition() -> None:
    right: Given = [("1", "4", 2), ("2", "7", 2), ("2", "5", 1)]
    left: Given = [("1", "first", 2), ("2", "second", 3)]
    before = {"within": ("1 hour", "0s"), "pick": "last", "how": "left", "where": "at_right < at"}
    assert pairs(left, right, **before) == [("first", None), ("second", "7")]
    assert pairs(left, [*right, ("1", "3", 1)], **before) == [("first", "3"), ("second", "7")]


@pytest.mark.parametrize("order", [(5, 6, 7), (7, 6, 5)])
def test_of_versions_of_one_time_the_last_one_that_came_is_valid(order: tuple[int, ...]) -> None:
    """RisingWave takes that with the smallest primary key: its rows are a set; here they are versions of one row."""
    app = Declaration("risingwave")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 hour")}
    left = app.stream("left", "id int, key int, at timestamp", **timed)
    right = app.stream("right", "key int, version int, at timestamp", **timed).to_table("key")
    app.view("out", left.join(right.as_of("at", history="1 hour"), on="key", how="left").emit(early=True, key="id"))
    with TestDriver(app) as driver:
        driver.send("left", [{"id": 4, "key": 2, "at": at(3)}])
        assert [row["version"] for row in driver.rows("out")] == [None]
        for version in order:
            driver.send("right", [{"key": 2, "version": version, "at": at(2)}])
        driver.end()
        assert [row["version"] for row in driver.rows("out")] == [order[-1]]
