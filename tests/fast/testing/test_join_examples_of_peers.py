"""Joins that the documents and tests of Kafka Streams and Flink work out: the same answers here, and where they differ, why."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

Given = list[tuple[str | None, str, float]]
LEFT: Given = [
    ("A", "L-1", 1), ("A", "L-2", 2), ("B", "L-4", 4), ("B", "L-5", 5), ("A", "L-6", 6), ("C", "L-7", 7),
    ("A", "L-10", 10), ("A", "L-12", 12), ("A", "L-20", 20),
]  # fmt: skip
RIGHT: Given = [("A", "R-5", 5), ("A", "R-6", 6), ("B", "R-7", 7), ("D", "R-8", 8)]
PAIRS = [("L-1", "R-6"), ("L-10", "R-6"), ("L-12", "R-6"), ("L-2", "R-6"), ("L-4", "R-7"), ("L-6", "R-6")]


def declared(app: Declaration, bound: str = "30s") -> tuple[Any, Any]:
    def stream(name: str) -> Any:
        return app.stream(name, "key string, id string, n int, at timestamp", key="key", time="at", watermark=bounded(bound, idle="1 hour"))

    return stream("left"), stream("right")


def rows(given: Given) -> list[dict[str, Any]]:
    return [{"key": key, "id": name, "n": int(second), "at": at(second)} for key, name, second in given]


def pairs(left: Given, right: Given, **options: Any) -> list[tuple[Any, Any]]:
    """The names of both sides of each result, at the end of the input."""
    app = Declaration("flink")
    one, two = declared(app)
    app.sink(one.join_within(two, on="key", **options), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("left", rows(left))
        driver.send("right", rows(right))
        driver.end()
        return sorted(((row["id"], row["id_right"]) for row in driver.rows("out")), key=str)


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [("L-20", None), ("L-5", None), ("L-7", None)]),
        ("right", [(None, "R-5"), (None, "R-8")]),
        ("full", [("L-20", None), ("L-5", None), ("L-7", None), (None, "R-5"), (None, "R-8")]),
    ],
)
def test_interval_joins_of_flink_with_a_condition(how: str, alone: list[tuple[Any, Any]]) -> None:
    """The left time is from five seconds before the right one to six after it; a condition takes L-5 and R-5 out of every pair."""
    found = pairs(LEFT, RIGHT, within=("6s", "5s"), how=how, where="not (id = 'L-5' or id_right = 'R-5')")
    assert found == sorted([*PAIRS, *alone], key=str)


def test_records_of_the_same_time_in_flink_meet_in_all_pairs() -> None:
    times = [("K1", 1.0), ("K1", 1.0), ("K1", 1.0), ("K1", 4.0), ("K1", 6.0), ("K1", 5.001)]
    left: Given = [*((key, f"L{n}", second) for n, (key, second) in enumerate(times, 1)), ("K2", "L7", 2)]
    right: Given = [*((key, f"R{n}", second) for n, (key, second) in enumerate(times, 1)), ("K2", "R7", 3)]
    expected = [(one, two) for one in ("L1", "L2", "L3") for two in ("R1", "R2", "R3")]
    assert pairs(left, right, within="0s") == sorted([*expected, ("L4", "R4"), ("L5", "R5"), ("L6", "R6")])


def test_a_bound_that_excludes_the_record_itself_is_a_condition() -> None:
    """Flink has bounds on one side of a record, 1 to 3 seconds before it. Here the stretch includes the record, and `where` narrows it."""
    left: Given = [("A", "L0.999", 0.999), ("A", "L1", 1), ("A", "L3", 3), ("A", "L3.001", 3.001)]
    found = pairs(left, [("A", "R0", 0)], within=("3s", "0s"), where="at_right <= at - interval 1 second")
    assert found == [("L1", "R0"), ("L3", "R0")]


def test_open_ends_of_a_stretch_in_flink_are_conditions() -> None:
    left: Given = [("1", "L1", 1), ("1", "L1.001", 1.001), ("1", "L3", 3), ("2", "L4", 4), ("1", "L4.999", 4.999), ("1", "L5", 5)]
    right: Given = [("1", "R1", 1), ("1", "R6", 6), ("2", "R7", 7), ("1", "R8", 8)]
    where = "at_right < at + interval 5 seconds and at_right > at + interval 1 second and n_right > 5"
    expected = [("L1.001", "R6"), ("L3", "R6"), ("L4", "R7"), ("L4.999", "R6")]
    # R8 is more than a second after three left records, and within five seconds of them.
    more = [("L4.999", "R8"), ("L5", "R8")]
    assert pairs(left, right, within=("0s", "5s"), where=where) == sorted([*expected, *more])


def test_windows_over_an_interval_join_go_by_the_later_time() -> None:
    """In Flink the user picks either time, and a pair may be late for the earlier one. Here the time of a pair is the later one."""
    left: Given = [("A", "L-1", 1), ("A", "L-2", 2), ("A", "L-3", 3), ("B", "L-4", 4), ("C", "L-5", 4), ("A", "L-6", 10), ("A", "L-7", 13)]
    right: Given = [("A", "R-1", 7), ("B", "R-4", 7), ("A", "R-3", 8), ("D", "R-2", 8)]
    app = Declaration("flink")
    one, two = declared(app)
    joined = one.join_within(two, on="key", within="5s")
    app.view("windows", joined.window(tumbling("4 seconds"), by="key").agg(n="count(*)"))
    with TestDriver(app) as driver:
        driver.send("left", rows(left))
        driver.send("right", rows(right))
        driver.end()
        found = sorted((row["key"], (row["window_end"] - at(0)).seconds, row["n"]) for row in driver.rows("windows"))
    assert found == [("A", 8, 2), ("A", 12, 3), ("A", 16, 1), ("B", 8, 1)]


def test_a_temporal_join_of_flink_converts_at_the_rate_of_the_order() -> None:
    app = Declaration("flink")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("2 hours", idle="1 day")}
    orders = app.stream("orders", "amount int, currency string, at timestamp", **timed)
    rates = app.stream("rates", "currency string, rate int, at timestamp", **timed).to_table("currency")
    app.sink(orders.join(rates.as_of("at", history="1 day"), on="currency"), LogTopic("out"), name="out")
    clock = "2026-01-01T{}:00Z"
    known = [("09:00", "US Dollar", 102), ("09:00", "Euro", 114), ("09:00", "Yen", 1), ("10:45", "Euro", 116), ("11:15", "Euro", 119)]
    asked = [("10:15", 2, "Euro"), ("10:30", 1, "US Dollar"), ("10:32", 50, "Yen"), ("10:52", 3, "Euro"), ("11:04", 5, "US Dollar")]
    with TestDriver(app) as driver:
        driver.send("orders", [{"at": clock.format(when), "amount": amount, "currency": name} for when, amount, name in asked])
        driver.send("rates", [{"at": clock.format(when), "currency": name, "rate": rate} for when, name, rate in reversed(known)])
        driver.end()
        found = sorted(row["amount"] * row["rate"] for row in driver.rows("out"))
    assert found == sorted([2 * 114, 1 * 102, 50 * 1, 3 * 116, 5 * 102])


def test_unmatched_duplicates_of_an_outer_join_of_kafka_streams() -> None:
    """There the time of all input moves on with any record; here each side waits for the other, so all of it is known at the end."""
    left: Given = [("0", "A0", 0), ("0", "A0-0", 0), ("2", "A2", 0.2), ("2", "A2-0", 0.2)]
    right: Given = [("1", "11", 0), ("1", "12", 0), ("1", "10", 0.111), ("3", "100", 0.211), ("2", "13", 0.201), ("2", "14", 0.201)]
    both = [("A2", "13"), ("A2", "14"), ("A2-0", "13"), ("A2-0", "14")]
    alone = [("A0", None), ("A0-0", None), (None, "10"), (None, "100"), (None, "11"), (None, "12")]
    assert pairs(left, right, within="100 ms", how="full") == sorted([*both, *alone], key=str)


# The values of one key on both sides, in order: a null removes a row of a table, and is no record of a stream.
SENT = [
    ("left", None), ("right", None), ("left", "A"), ("right", "a"), ("left", "B"), ("right", "b"), ("left", None), ("right", None),
    ("left", "C"), ("right", "c"), ("right", None), ("left", None), ("right", None), ("right", "d"), ("left", "D"),
]  # fmt: skip
# What the table has after each of them.
TABLES: dict[str, list[str | None]] = {
    "inner": [None, None, None, "A-a", "B-a", "B-b", None, None, None, "C-c", None, None, None, None, "D-d"],
    "left": [None, None, "A-null", "A-a", "B-a", "B-b", None, None, "C-null", "C-c", "C-null", None, None, None, "D-d"],
    "full": [None, None, "A-null", "A-a", "B-a", "B-b", "null-b", None, "C-null", "C-c", "C-null", None, None, "null-d", "D-d"],
}
KAFKA = hr.kafka("topic", servers="127.0.0.1:1")


@pytest.mark.parametrize("how", TABLES)
def test_tables_of_kafka_streams_after_every_change(how: str) -> None:
    app = Declaration("kafka")
    left = app.table("left", "key int, l string", key="key", source=KAFKA)
    right = app.table("right", "key int, r string", key="key", source=KAFKA)
    app.view("out", left.join(right, on="key", how=how, ttl=None))
    found: list[str | None] = []
    with TestDriver(app) as driver:
        for side, value in SENT:
            if value is None:
                driver.remove(side, [{"key": 1}])
            else:
                driver.send(side, [{"key": 1, side[0]: value}])
            found.append(next((f"{row['l'] or 'null'}-{row['r'] or 'null'}" for row in driver.rows("out")), None))
    assert found == TABLES[how]


@pytest.mark.parametrize(("how", "expected"), [("inner", ["B-a", "D-d"]), ("left", ["A-None", "B-a", "C-None", "D-d"])])
def test_a_stream_of_kafka_streams_with_a_table(how: str, expected: list[str]) -> None:
    app = Declaration("kafka")
    left = app.stream("left", "key int, l string", key="key")
    right = app.table("right", "key int, r string", key="key", source=KAFKA)
    app.sink(left.join(right, on="key", how=how), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for side, value in SENT:
            if value is not None:
                driver.send(side, [{"key": 1, side[0]: value}])
            elif side == "right":
                driver.remove(side, [{"key": 1}])
        assert [f"{row['l']}-{row['r']}" for row in driver.rows("out")] == expected


@pytest.mark.parametrize("how", ["inner", "left"])
def test_foreign_keys_of_kafka_streams_when_either_side_is_deleted(how: str) -> None:
    app = Declaration("kafka")
    left = app.table("left", "id string, l string, fk string", key="id", source=KAFKA)
    right = app.table("right", "fk string, r string", key="fk", source=KAFKA)
    app.view("out", left.join(right, on="fk", how=how, ttl=None))

    def found(driver: TestDriver) -> dict[str, str | None]:
        return {row["id"]: row["r"] for row in driver.rows("out")}

    def alone(*names: str) -> dict[str, str | None]:
        return dict.fromkeys(names) if how == "left" else {}

    with TestDriver(app) as driver:
        driver.send("left", [{"id": f"lhs{n}", "l": f"l{n}", "fk": fk} for n, fk in ((1, "rhs1"), (2, "rhs2"), (3, "rhs1"))])
        assert found(driver) == alone("lhs1", "lhs2", "lhs3")
        driver.send("right", [{"fk": "rhs1", "r": "r1"}])
        assert found(driver) == {"lhs1": "r1", "lhs3": "r1"} | alone("lhs2")
        driver.send("right", [{"fk": "rhs2", "r": "r2"}, {"fk": "rhs3", "r": "r3"}])
        assert found(driver) == {"lhs1": "r1", "lhs2": "r2", "lhs3": "r1"}
        driver.remove("right", [{"fk": "rhs1"}])
        assert found(driver) == {"lhs2": "r2"} | alone("lhs1", "lhs3")
        driver.send("left", [{"id": "lhs1", "l": "l1", "fk": "rhs3"}])
        driver.remove("left", [{"id": "lhs2"}])
        assert found(driver) == {"lhs1": "r3"} | alone("lhs3")
