"""Joins of what should not be there: no times, odd keys, keys that come twice. Nothing is lost, and the accounting says where it went."""

from __future__ import annotations

import math
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, count_window
from headrace.core.errors import PlanError, SchemaError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
START = at(0)
# Two zeros are one key, and so are all values that are no number; infinities are two keys.
ODD = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, None]


def joined(kind: str, how: str, columns: str = "x double") -> Declaration:
    """An app that joins records `a` with `b` in one of the ways, by the column x."""
    app = Declaration("odd")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 hour")}
    left = app.stream("a", f"id int, {columns}, at timestamp", key="id", **timed)
    if kind == "tables":
        right = app.table("b", f"{columns}, r int", key="x", source=KAFKA)
        app.view("out", left.to_table("id").join(right, on="x", how=how, ttl=None))
        return app
    if kind == "table":
        made = left.join(app.table("b", f"{columns}, r int", key="x", source=KAFKA), on="x", how=how)
    else:
        other = app.stream("b", f"{columns}, r int, at timestamp", key="x", **timed)
        if kind == "within":
            made = left.join_within(other, on="x", within="5s", how=how)
        else:
            made = left.join(other.to_table("x").as_of("at", history="1 hour"), on="x", how=how)
    app.sink(made, LogTopic("out"), name="out")
    return app


def row(kind: str, name: str, moment: Any = START, **values: Any) -> dict[str, Any]:
    return values if kind in ("table", "tables") and name == "b" else {**values, "at": moment}


def counts(driver: TestDriver, step: str) -> dict[str, int]:
    (found,) = [one for one in driver.accounting() if one["step"] == step]
    return {end: number for end, number in found.items() if number and end != "step"}


@pytest.mark.parametrize("kind", ["within", "table", "as_of", "tables"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_zeros_are_one_key_and_so_is_what_is_no_number(kind: str, how: str) -> None:
    with TestDriver(joined(kind, how), shards=3) as driver:
        driver.send("b", [row(kind, "b", x=x, r=r) for r, x in enumerate((-0.0, math.nan, math.inf))])
        driver.send("a", [row(kind, "a", id=number, x=x) for number, x in enumerate(ODD)])
        driver.restart()
        driver.end()
        found = {one["id"]: one["r"] for one in driver.rows("out")}
    alone = dict.fromkeys((5, 6)) if how == "left" else {}
    assert found == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2} | alone


@pytest.mark.parametrize("kind", ["within", "as_of"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_records_without_a_time_are_dead_letters_and_counted(kind: str, how: str) -> None:
    with TestDriver(joined(kind, how, "x string")) as driver:
        driver.send("b", [row(kind, "b", x="k", r=1), row(kind, "b", None, x="k", r=2)])
        driver.send("a", [row(kind, "a", id=1, x="k"), row(kind, "a", None, id=2, x="k")])
        driver.end()
        found = {one["id"]: one["r"] for one in driver.rows("out")}
        dead = len(driver.dead_letters("a")) + len(driver.dead_letters("b"))
        counted = counts(driver, "a.join")
    assert found == {1: 1}
    assert dead == 2
    assert counted["in"] == sum(number for end, number in counted.items() if end != "in")


@pytest.mark.parametrize("kind", ["table", "tables", "as_of"])
def test_of_a_key_that_comes_twice_in_a_table_the_last_row_counts(kind: str) -> None:
    with TestDriver(joined(kind, "inner", "x string")) as driver:
        driver.send("b", [row(kind, "b", x="k", r=1), row(kind, "b", x="k", r=2)])
        driver.send("b", [row(kind, "b", x="k", r=3), row(kind, "b", x="l", r=9), row(kind, "b", x="k", r=4)])
        driver.send("a", [row(kind, "a", at(1), id=1, x="k"), row(kind, "a", at(1), id=2, x="k"), row(kind, "a", at(1), id=2, x="l")])
        driver.end()
        found = sorted((one["id"], one["r"]) for one in driver.rows("out"))
    assert found == ([(1, 4), (2, 9)] if kind == "tables" else [(1, 4), (2, 4), (2, 9)])


@pytest.mark.parametrize("kind", ["table", "tables", "as_of", "within"])
@pytest.mark.parametrize(
    ("one", "two", "cast"),
    [
        ("int", "bigint", "with_columns(x='cast(x as bigint)') of 'a'"),
        ("bigint", "int", "with_columns(x='cast(x as bigint)') of 'b'"),
        ("string", "int", "with_columns(x='cast(x as string)') of 'b'"),
        ("float", "double", "with_columns(x='cast(x as double)') of 'a'"),
        ("date", "timestamp", "with_columns(x='cast(x as timestamp)') of 'a'"),
        (
            "decimal(5,2)",
            "decimal(4,3)",
            "with_columns(x='cast(x as decimal(6,3))') of 'a' and with_columns(x='cast(x as decimal(6,3))') of 'b'",
        ),
        ("boolean", "date", "with_columns(x='cast(x as string)') of 'a' and with_columns(x='cast(x as string)') of 'b'"),
    ],
)
def test_keys_of_two_types_are_refused_with_the_cast_that_keeps_their_values(kind: str, one: str, two: str, cast: str) -> None:
    app = Declaration("types")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 hour")}
    left = app.stream("a", f"id int, x {one}, at timestamp", key="id", **timed)
    right = app.stream("b", f"x {two}, r int, at timestamp", key="x", **timed)
    table = right.to_table("x")
    declare = {
        "within": lambda: left.join_within(right, on="x", within="1s"),
        "table": lambda: left.join(table, on="x"),
        "tables": lambda: left.to_table("id").join(table, on="x", ttl=None),
        "as_of": lambda: left.join(table.as_of("at", history="1 hour"), on="x"),
    }
    with pytest.raises(PlanError, match="keys of two types") as refused:
        declare[kind]()
    hint = str(refused.value.hint)
    assert cast in hint.replace("b.table", "b").replace("a.table", "a")
    keyed = kind not in ("within", "as_of") and cast.endswith("of 'b'")
    assert hint.endswith(", before it is the key of 'b.table'") == keyed


@pytest.mark.parametrize("suffix", [None, 5, b"_b"])
def test_a_suffix_that_is_no_text_is_refused(suffix: Any) -> None:
    app = Declaration("suffixes")
    left, right = (app.stream(name, "id int, x int", key="id").to_table("id") for name in "ab")
    with pytest.raises(PlanError, match="is not text"):
        left.join(right, on="id", ttl=None, suffix=suffix)


def test_rows_of_two_tables_with_one_key_and_without_a_match_are_two_rows_of_a_full_join() -> None:
    app = Declaration("full")
    one = app.table("a", "id int, x int, n int", key="id", source=KAFKA)
    two = app.table("b", "id int, x int, m int", key="id", source=KAFKA)
    app.view("out", one.join(two, on=["id", "x"], how="full", ttl=None))
    with TestDriver(app) as driver:
        driver.send_all({"a": [{"id": 1, "x": 1, "n": 5}], "b": [{"id": 1, "x": 2, "m": 6}]})
        assert [list(row.values()) for row in driver.rows("out")] == [[1, 1, 5, None], [1, 2, None, 6]]
        driver.remove("a", [{"id": 1}])
        assert [list(row.values()) for row in driver.rows("out")] == [[1, 2, None, 6]]


@pytest.mark.parametrize("on", ["x", "n"])
def test_a_row_that_a_full_join_cannot_tell_from_one_of_the_other_table_is_a_dead_letter(on: str) -> None:
    """Both tables have a row whose key is null: in the result, nothing but its key would tell which of them a row is of."""
    app = Declaration("null")
    one, two = app.table("a", "x int, n int", key="x", source=KAFKA), app.table("b", "x int, n int", key="x", source=KAFKA)
    app.view("out", one.join(two, on=on, how="full", ttl=None))
    with TestDriver(app) as driver:
        driver.send_all({"a": [{"x": None, "n": 5}, {"x": 1, "n": 6}], "b": [{"x": None, "n": 7}, {"x": 2, "n": 8}]})
        assert len(driver.rows("out")) == 2
        driver.send("a", [{"x": None, "n": 9}])
        driver.remove("a", [{"x": None}])
        assert len(driver.rows("out")) == 2
        assert [letter["step"] for stream in "ab" for letter in driver.dead_letters(stream)] == ["a.table.join"] * 3
        assert "a row of the other table" in driver.dead_letters("a")[0]["reason"]
        found = counts(driver, "a.table.join")
        assert found["in"] == found["out"] + found["filtered"] + found["dead_letter"]
        assert found["dead_letter"] == 3


@pytest.mark.parametrize("how", ["left", "full"])
def test_a_row_whose_key_is_half_null_is_told_from_one_of_the_other_table_in_a_full_join_by_the_other_half(how: str) -> None:
    """Its own key is half null, and a row of the other table with the other half is a match of it."""
    app = Declaration("outer")
    one, two = app.table("a", "id int, k string", key="id", source=KAFKA), app.table("b", "rid int, k string", key="rid", source=KAFKA)
    named = app.table("c", "id int, name string", key="id", source=KAFKA)
    app.view("out", one.join(two, on="k", how=how, ttl=None).join(named, on="id", how="full", ttl=None).select("id, rid, k, name"))
    with TestDriver(app) as driver:
        driver.send_all({"a": [{"id": 1, "k": "x"}, {"id": 2, "k": "y"}, {"id": None, "k": "z"}]})
        driver.send_all({"b": [{"rid": 7, "k": "y"}], "c": [{"id": 1, "name": "one"}, {"id": 3, "name": "three"}]})
        matched = [[1, None, "x", "one"], [2, 7, "y", None], [3, None, None, "three"]]
        assert [list(row.values()) for row in driver.rows("out")] == matched
        driver.remove("b", [{"rid": 7}])
        driver.remove("c", [{"id": 1}])
        assert [list(row.values()) for row in driver.rows("out")] == [[1, None, "x", None], [2, None, "y", None], [3, None, None, "three"]]
        # A null is compared with nothing: this row could not be told from one of the other table.
        (letter,) = driver.dead_letters("a")
        assert "id is null" in letter["reason"]


def test_a_row_whose_key_tells_it_apart_may_have_a_null_in_what_a_full_join_compares() -> None:
    app = Declaration("compared")
    prices = app.table("a", "k string, y int", key="k", source=KAFKA)
    offers = app.table("b", "id int, k string, x int", key="id", source=KAFKA)
    app.view("out", prices.join(offers, on={"k": "k", "y": "x"}, how="full", ttl=None))
    best = offers.group("k", ttl=None).agg(most="max(x)")
    app.view("best", prices.join(offers, on="k", ttl=None).join(best, on={"k": "k", "y": "most"}, how="full", ttl=None).select("id, k, y"))
    with TestDriver(app) as driver:
        driver.send_all(
            {"a": [{"k": "v", "y": None}, {"k": "w", "y": 2}], "b": [{"id": 1, "k": "v", "x": None}, {"id": 2, "k": "w", "x": 2}]}
        )
        assert {tuple(row.values()) for row in driver.rows("out")} == {("v", None, None), ("v", None, 1), ("w", 2, 2)}
        assert {tuple(row.values()) for row in driver.rows("best")} == {(1, "v", None), (None, "v", None), (2, "w", 2)}
        assert [driver.dead_letters(stream) for stream in "ab"] == [[], []]


def test_what_is_no_number_is_one_key_of_every_step_that_has_a_state() -> None:
    """A single row by a single number: two such frames are merged by polars, not hashed."""
    app = Declaration("steps")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 hour")}
    left = app.stream("a", "id int, x double, at timestamp", key="id", **timed)
    app.sink(left.dedup("x", ttl="1 hour"), LogTopic("deduped"), name="deduped")
    app.view("grouped", left.group("x", ttl="1 hour").agg(n="count(*)"))
    app.sink(left.with_previous("id", by="x", ttl="1 hour"), LogTopic("previous"), name="previous")
    app.view("counted", left.window(count_window(2), by="x").agg(n="sum(id)"))
    asked = lambda keys: [{"x": x, "name": "odd"} for x in keys["x"].to_pylist()]  # noqa: E731
    app.sink(left.lookup(asked, on="x", returns="name string"), LogTopic("named"), name="named")
    with TestDriver(app, shards=1) as driver:
        for number in (1, 2, 3):
            driver.send("a", [{"id": number, "x": math.nan, "at": at(number)}])
        driver.end()
        assert [row["id"] for row in driver.rows("deduped")] == [1]
        assert [row["n"] for row in driver.rows("grouped")] == [3]
        assert sorted((row["id"], row["previous_id"]) for row in driver.rows("previous")) == [(1, None), (2, 1), (3, 2)]
        assert [row["n"] for row in driver.rows("counted")] == [3, 3]
        assert [row["name"] for row in driver.rows("named")] == ["odd"] * 3


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_row_is_removed_by_its_key_alone_where_other_columns_are_not_null(how: str) -> None:
    app = Declaration("removed")
    orders = app.table("orders", "id int not null, product string not null", key="id", source=KAFKA)
    prices = app.table("prices", "product string not null, price int not null", key="product", source=KAFKA)
    app.view("out", orders.join(prices, on="product", how=how, ttl=None))
    with TestDriver(app) as driver:
        driver.send("prices", [{"product": "pen", "price": 5}])
        driver.send("orders", [{"id": 1, "product": "pen"}, {"id": 2, "product": "pen"}])
        driver.remove("orders", [{"id": 2}])
        assert driver.rows("out") == [{"id": 1, "product": "pen", "price": 5}]
        driver.remove("prices", [{"product": "pen"}])
        assert driver.rows("out") == ([{"id": 1, "product": "pen", "price": None}] if how == "left" else [])
        with pytest.raises(SchemaError, match="column 'id' is NOT NULL"):
            driver.remove("orders", [{"product": "pen"}])
