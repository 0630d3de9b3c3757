"""Joins that the documents and tests of Kafka Streams and ksqlDB work out: the same answers here, and where they differ, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.peer_joins import Given, Pairs, declared, named, pairs, rows
from tests.support.streams import at

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
# The values of one key on both sides, each with its second, in the order of arrival: a null removes a row of a table, and is no record of
# a stream. The first thirteen are in order.
Sent = list[tuple[str, str | None, int]]
IN_ORDER: Sent = [
    ("left", None, 1), ("right", None, 2), ("left", "A", 3), ("right", "a", 4), ("left", "B", 5), ("right", "b", 6), ("left", None, 7),
    ("right", None, 8), ("left", "C", 9), ("right", "c", 10), ("right", None, 11), ("left", None, 12), ("right", None, 13),
]  # fmt: skip
SENT: Sent = [
    *IN_ORDER, ("right", "d", 7), ("left", "D", 6), ("left", None, 2), ("right", None, 3), ("right", "e", 14), ("left", "E", 15),
    ("left", None, 10), ("right", None, 9), ("left", "F", 4), ("right", "f", 3),
]  # fmt: skip
WITHOUT_DISORDER: Sent = [*IN_ORDER, ("right", "d", 14), ("left", "D", 15)]
NONE = None
# What the joined table has after each of them: Kafka lists the changes, and a null where the row is removed.
TABLES: dict[str, list[str | None]] = {
    "inner": [
        NONE, NONE, NONE, "A-a", "B-a", "B-b", NONE, NONE, NONE, "C-c", NONE, NONE, NONE, NONE, "D-d", NONE, NONE, NONE, "E-e", NONE, NONE,
        NONE, "F-f",
    ],
    "left": [
        NONE, NONE, "A-null", "A-a", "B-a", "B-b", NONE, NONE, "C-null", "C-c", "C-null", NONE, NONE, NONE, "D-d", NONE, NONE, NONE, "E-e",
        NONE, NONE, "F-null", "F-f",
    ],
    "full": [
        NONE, NONE, "A-null", "A-a", "B-a", "B-b", "null-b", NONE, "C-null", "C-c", "C-null", NONE, NONE, "null-d", "D-d", "null-d", NONE,
        "null-e", "E-e", "null-e", NONE, "F-null", "F-f",
    ],
}  # fmt: skip


def send(driver: TestDriver, side: str, value: str | None) -> None:
    if value is None:
        driver.remove(side, [{"key": 1}])
    else:
        driver.send(side, [{"key": 1, side[0]: value}])


@pytest.mark.parametrize("how", TABLES)
def test_tables_after_every_change(how: str) -> None:
    app = Declaration("kafka")
    left = app.table("left", "key int, l string", key="key", source=KAFKA)
    right = app.table("right", "key int, r string", key="key", source=KAFKA)
    app.view("out", left.join(right, on="key", how=how, ttl=None))
    found: list[str | None] = []
    with TestDriver(app) as driver:
        for side, value, _ in SENT:
            send(driver, side, value)
            found.append(next((f"{row['l'] or 'null'}-{row['r'] or 'null'}" for row in driver.rows("out")), None))
    assert found == TABLES[how]


HOWS = ("inner", "left", "full")


@pytest.mark.parametrize("first", HOWS)
@pytest.mark.parametrize("second", HOWS)
def test_a_joined_table_that_is_joined_with_its_right_side_again(first: str, second: str) -> None:
    """The value that Kafka has in the end is D-d-d for each of the nine, and no row is left over in between."""
    app = Declaration("kafka")
    left = app.table("left", "key int, l string", key="key", source=KAFKA)
    right = app.table("right", "key int, r string", key="key", source=KAFKA)
    app.view("out", left.join(right, on="key", how=first, ttl=None).join(right, on="key", how=second, ttl=None))
    with TestDriver(app) as driver:
        held: dict[str, str | None] = {"left": None, "right": None}
        for side, value, _ in WITHOUT_DISORDER:
            send(driver, side, value)
            held[side] = value
            one, two = held["left"], held["right"]
            met = (one and two) or (one and first != "inner") or (two and first == "full")
            expected = (one if met else None, two if met else None, two)
            lives = (met and (two or second != "inner")) or (two and second == "full")
            assert [(row["l"], row["r"], row["r_right"]) for row in driver.rows("out")] == ([expected] if lives else [])
        assert [(row["l"], row["r"], row["r_right"]) for row in driver.rows("out")] == [("D", "d", "d")]


@pytest.mark.parametrize(
    ("how", "expected"), [("inner", ["B-a", "D-d", "E-e"]), ("left", ["A-None", "B-a", "C-None", "D-d", "E-e", "F-None"])]
)
def test_a_stream_with_a_table_goes_by_arrival(how: str, expected: list[str]) -> None:
    app = Declaration("kafka")
    left = app.stream("left", "key int, l string", key="key")
    right = app.table("right", "key int, r string", key="key", source=KAFKA)
    app.sink(left.join(right, on="key", how=how), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for side, value, _ in SENT:
            if value is not None or side == "right":
                send(driver, side, value)
        assert [f"{row['l']}-{row['r']}" for row in driver.rows("out")] == expected


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_stream_with_versions_of_a_table_goes_by_event_time(how: str) -> None:
    """Kafka answers at once, so that A, of second 3, finds nothing; here it waits, and finds f, the last value that came for second 3."""
    app = Declaration("kafka")
    timed: dict[str, Any] = {"key": "key", "time": "at", "watermark": bounded("1 minute", idle="1 hour")}
    left = app.stream("left", "key int, l string, at timestamp", **timed)
    right = app.stream("right", "key int, r string, at timestamp", **timed)
    joined = left.join(right.to_table("key").as_of("at", history="5 minutes"), on="key", how=how)
    app.sink(joined if how == "left" else joined.where("r is not null"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for side, value, second in SENT:
            if value is not None or side == "right":
                driver.send(side, [{"key": 1, side[0]: value, "at": at(second)}])
        driver.end()
        found = sorted(f"{row['l']}-{row['r']}" for row in driver.rows("out"))
    met = ["A-f", "B-a", "D-b", "E-e", "F-a"]
    assert found == (met if how == "inner" else sorted([*met, "C-None"]))


# All pairs of values: twelve seconds apart at most, of which a null is none.
STREAMS: Pairs = [
    ("A", "a"), ("B", "a"), ("A", "b"), ("B", "b"), ("C", "a"), ("C", "b"), ("A", "c"), ("B", "c"), ("C", "c"), ("A", "d"), ("B", "d"),
    ("C", "d"), ("D", "a"), ("D", "b"), ("D", "c"), ("D", "d"),
]  # fmt: skip


def side_of(side: str, sent: Sent, more: Sequence[tuple[str, str | None, str, float]] = ()) -> Given:
    """The records of one side: those of the key, and more."""
    values: Given = [("1", value, second) for name, value, second in sent if name == side and value is not None]
    return [*values, *((key, value, second) for name, key, value, second in more if name == side)]


@pytest.mark.parametrize(
    ("how", "alone"), [("inner", []), ("left", [("E", None)]), ("right", [(None, "e")]), ("full", [("E", None), (None, "e")])]
)
def test_streams_with_keys_that_are_null(how: str, alone: Pairs) -> None:
    more: list[tuple[str, str | None, str, float]] = [("left", None, "E", 16), ("right", None, "e", 17)]
    left, right = side_of("left", WITHOUT_DISORDER, more), side_of("right", WITHOUT_DISORDER, more)
    assert pairs(left, right, within="12s", how=how) == sorted([*STREAMS, *alone], key=str)


@pytest.mark.parametrize(
    ("how", "alone"),
    [("inner", []), ("left", [("E", None), ("F", None), ("G", None)]), ("full", [("E", None), ("F", None), ("G", None), (None, "f")])],
)
def test_streams_within_fifteen_seconds_of_the_developer_guide(how: str, alone: Pairs) -> None:
    """G is without a match in the guide, too, which ends before that is known."""
    more: list[tuple[str, str | None, str, float]] = [("left", "1", "E", 40), ("left", "1", "F", 60), ("right", "1", "f", 80)]
    more.append(("left", "1", "G", 100))
    left, right = side_of("left", WITHOUT_DISORDER, more), side_of("right", WITHOUT_DISORDER, more)
    assert pairs(left, right, within="15s", how=how, bound="5s") == sorted([*STREAMS, *alone], key=str)


def test_a_stream_with_itself() -> None:
    given: Given = [("1", "A", 2), ("1", "B", 3), ("1", "C", 5), ("1", "D", 7)]
    app = Declaration("kafka")
    left, _ = declared(app)
    app.sink(left.join_within(left, on="key", within="10s"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for number in range(4):
            driver.send("left", rows(given[number : number + 1]))
            assert named(driver) == [(one, two) for one in "ABCD"[: number + 1] for two in "ABCD"[: number + 1]]


def test_unmatched_duplicates_of_an_outer_join() -> None:
    """There the time of all input moves on with any record; here each side waits for the other, so all of it is known at the end."""
    left: Given = [("0", "A0", 0), ("0", "A0-0", 0), ("2", "A2", 0.2), ("2", "A2-0", 0.2)]
    right: Given = [("1", "11", 0), ("1", "12", 0), ("1", "10", 0.111), ("3", "100", 0.211), ("2", "13", 0.201), ("2", "14", 0.201)]
    both = [("A2", "13"), ("A2", "14"), ("A2-0", "13"), ("A2-0", "14")]
    alone = [("A0", None), ("A0-0", None), (None, "10"), (None, "100"), (None, "11"), (None, "12")]
    assert pairs(left, right, within="100 ms", how="full") == sorted([*both, *alone], key=str)


@pytest.mark.parametrize(
    ("how", "alone"),
    [("inner", []), ("left", [("100", None), ("bar", None), ("ninety", None)]),
     ("full", [("100", None), ("bar", None), ("ninety", None), (None, "newblah")])],
)  # fmt: skip
def test_streams_of_ksqldb_within_eleven_seconds(how: str, alone: Pairs) -> None:
    """Without a grace period ksqlDB says at once that zero has no match, and says its match when that comes; here only the latter."""
    left: Given = [("0", "zero", 0), ("10", "100", 11), ("0", "foo", 13), ("0", "bar", 30), ("90", "ninety", 17)]
    right: Given = [("0", "blah", 10), ("0", "a", 15), ("100", "newblah", 20)]
    met = [("foo", "a"), ("foo", "blah"), ("zero", "blah")]
    assert pairs(left, right, within="11s", how=how) == sorted([*met, *alone], key=str)


def test_streams_of_ksqldb_that_may_be_apart_by_more_before_than_after() -> None:
    left: Given = [("0", "zero", 0), ("10", "100", 12), ("0", "foo", 13), ("90", "ninety", 17), ("0", "bar", 30)]
    right: Given = [("0", "blah", 11), ("0", "a", 15), ("100", "newblah", 16)]
    assert pairs(left, right, within=("11s", "10s")) == [("foo", "a"), ("foo", "blah")]


def test_a_record_of_ksqldb_that_comes_out_of_order_meets_what_it_would_have_met() -> None:
    left: Given = [("0", "zero", 0), ("10", "100", 11), ("0", "foo", 13), ("90", "ninety", 17), ("0", "bar", 30), ("0", "late-message", 6)]
    right: Given = [("0", "blah", 9.999), ("0", "a", 15), ("100", "newblah", 16)]
    met = [("foo", "a"), ("foo", "blah"), ("late-message", "a"), ("late-message", "blah"), ("zero", "blah")]
    assert pairs(left, right, within="10s") == met


@pytest.mark.parametrize(
    ("how", "alone"),
    [("inner", []), ("left", [("B", None)]), ("right", []), ("full", [("B", None)])],
)
def test_records_of_ksqldb_behind_the_grace_period_are_late(how: str, alone: Pairs) -> None:
    """B moves time on by itself in ksqlDB; here the other side must come as far, and what is late is in the late topic, not lost."""
    app = Declaration("ksqldb")
    left, right = declared(app, "1 minute")
    app.sink(left.join_within(right, on="key", within="1 minute", how=how), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows([("0", "A", 0)]))
        driver.send("right", rows([("0", "a", 60)]))
        driver.send("left", rows([("1", "B", 330)]))
        driver.advance(at(270))
        for key, one, two, second in (("2", "C", "c", 90), ("3", "D", "d", 60)):
            driver.send("left", rows([(key, one, second)]))
            driver.send("right", rows([(key, two, second)]))
        driver.end()
        assert named(driver) == sorted([("A", "a"), *alone], key=str)
        assert [row["id"] for side in ("left", "right") for row in driver.late(side)] == ["C", "D", "c", "d"]


def test_tables_of_ksqldb_after_every_change() -> None:
    app = Declaration("ksqldb")
    left = app.stream("left", "id int, name string, value int").to_table("id")
    right = app.stream("right", "id int, f1 string, f2 int").to_table("id")
    app.view("out", left.join(right, on="id", how="full", ttl=None))
    changes: list[tuple[str, int, str, str | None, str | None]] = [
        ("left", 0, "zero", "zero", None), ("right", 0, "blah", "zero", "blah"), ("left", 10, "100", "100", None),
        ("left", 0, "foo", "foo", "blah"), ("right", 0, "a", "foo", "a"), ("right", 15, "c", None, "c"), ("left", 0, "bar", "bar", "a"),
    ]  # fmt: skip
    with TestDriver(app) as driver:
        for side, key, value, name, f1 in changes:
            driver.send(side, [{"id": key, "name" if side == "left" else "f1": value}])
            assert [(row["name"], row["f1"]) for row in driver.rows("out") if row["id"] == key] == [(name, f1)]
