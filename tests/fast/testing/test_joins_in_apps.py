"""Joins in whole apps: where late, bad and unmatched rows go, what is kept and for how long, and what may follow a join."""

from __future__ import annotations

import math
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import PlanError
from headrace.engine.times.event_time_trace import timings
from headrace.log.target import LogTopic
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver
from tests.support.joining import LEFT, RIGHT, ordered
from tests.support.streams import at

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
Row = dict[str, Any]


def declared(idle: str | None = "1 minute") -> tuple[Declaration, Stream, Stream]:
    app = Declaration("joins")
    left = app.stream("a", LEFT, key="k", time="at", watermark=bounded("10s", idle=idle))
    return app, left, app.stream("b", RIGHT, key="k", time="at", watermark=bounded("10s", idle=idle))


def left_row(number: int, second: float, key: str | None = "x", n: int | None = None) -> Row:
    return {"id": number, "k": key, "n": n, "at": at(second)}


def right_row(number: int, second: float, key: str | None = "x", m: int | None = None) -> Row:
    return {"rid": number, "k": key, "m": m, "at": at(second)}


def counts(driver: TestDriver, step: str) -> dict[str, int]:
    (found,) = [row for row in driver.accounting() if row["step"] == step]
    return {end: number for end, number in found.items() if number and end not in ("step",)}


def test_late_rows_go_to_the_topic_of_their_own_stream() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within="5s"), LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 100)])
    driver.send("b", [right_row(2, 100)])
    driver.send("b", [right_row(3, 89), right_row(4, 95)])
    driver.send("a", [left_row(5, 80)])
    assert [row["rid"] for row in driver.late("b")] == [3]
    assert [row["id"] for row in driver.late("a")] == [5]
    assert {row["rid"] for row in driver.rows("out")} == {2, 4}
    assert counts(driver, "a.join") == {"in": 5, "out": 3, "late": 2}


def test_both_ends_of_the_stretch_are_included() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within=("2s", "5s")), LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 100)])
    driver.send("b", [right_row(1, 100 + apart) for apart in (-2.000001, -2, 0, 5, 5.000001)])
    assert [row["at_right"] for row in driver.rows("out")] == [at(98), at(100), at(105)]


def test_unmatched_rows_leave_when_the_other_side_has_fallen_silent() -> None:
    app, left, right = declared(idle="1 minute")
    app.sink(left.join_within(right, on="k", within="5s", how="full"), LogTopic("out"), name="out")
    driver = TestDriver(app, starts_at="2026-01-01T12:00:00Z")
    driver.send("a", [left_row(1, 0)])
    driver.send("b", [right_row(2, 0, "y")])
    driver.send("a", [left_row(3, 30)])
    assert driver.rows("out") == []
    driver.wait("2 minutes")
    driver.send("a", [left_row(4, 110)])
    assert {(row["id"], row["rid"]) for row in driver.rows("out")} == {(1, None), (None, 2), (3, None)}


def test_a_null_key_is_filtered_by_an_inner_join_and_leaves_an_outer_one() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within="5s"), LogTopic("inner"), name="inner")
    app.sink(left.join_within(right, on="k", within="5s", how="left"), LogTopic("left"), name="left")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 0, None)])
    driver.send("b", [right_row(2, 0, None)])
    driver.end()
    assert driver.rows("inner") == []
    assert [(row["id"], row["rid"]) for row in driver.rows("left")] == [(1, None)]
    assert counts(driver, "a.join") == {"in": 2, "filtered": 2}
    assert counts(driver, "a.join#2") == {"in": 2, "out": 1, "filtered": 1}


def test_zeros_and_what_is_no_number_are_one_key_each() -> None:
    app = Declaration("floats")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 minute")}
    left = app.stream("a", "id int, x double, at timestamp", **timed)
    right = app.stream("b", "rid int, y double, at timestamp", **timed)
    app.sink(left.join_within(right, on={"x": "y"}, within="5s"), LogTopic("out"), name="out")
    driver = TestDriver(app, shards=3)
    driver.send("a", [{"id": 1, "x": 0.0, "at": at(0)}, {"id": 2, "x": math.nan, "at": at(0)}])
    driver.send("b", [{"rid": 3, "y": -0.0, "at": at(0)}, {"rid": 4, "y": -math.nan, "at": at(0)}])
    assert {(row["id"], row["rid"]) for row in driver.rows("out")} == {(1, 3), (2, 4)}


@pytest.mark.parametrize("pick", ["all", "last"])
def test_a_condition_that_cannot_be_computed_is_a_dead_letter(pick: str) -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within="5s", where="1 / m > 0", how="left", pick=pick), LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 0)])
    driver.send("b", [right_row(2, 0, m=0), right_row(3, 1, m=2)])
    driver.end()
    assert [(row["id"], row["rid"]) for row in driver.rows("out")] == [(1, 3)]
    (letter,) = driver.dead_letters("a")
    assert "zero" in letter["reason"]
    assert letter["step"] == "a.join.results"


@pytest.mark.parametrize("pick", ["all", "last"])
def test_a_condition_that_is_null_for_every_pair_is_never_true(pick: str) -> None:
    app = Declaration("null")
    stream = app.stream("a", "id int, k string, at timestamp", key="k", time="at", watermark=bounded("1s"))
    app.sink(stream.join_within(stream, on="k", within="5s", how="left", pick=pick, where="null"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("a", [{"id": 1, "k": "x", "at": at(0)}])
        driver.end()
        assert [(row["id"], row["id_right"]) for row in driver.rows("out")] == [(1, None)]


def test_what_is_kept_follows_the_stretch_and_falls_back() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within="5s"), LogTopic("out"), name="out")
    driver = TestDriver(app)
    most = 0
    for second in range(0, 600, 5):
        driver.send("a", [left_row(second, second)])
        driver.send("b", [right_row(second, second)])
        most = max(most, driver.state()[0]["rows"])
    assert 4 < most < 40
    driver.end()
    assert driver.state()[0]["rows"] == 0


def test_a_stream_that_waits_for_matches_is_not_late_for_what_follows() -> None:
    app, left, right = declared()
    joined = left.join_within(right, on="k", within=("0s", "30s"), how="left")
    app.view("minutes", joined.window(tumbling("1 minute"), by="k").agg(rows="count(*)", matched="count(rid)"))
    driver = TestDriver(app)
    for second in range(0, 300, 10):
        driver.send("a", [left_row(second, second)])
        driver.send("b", [right_row(second, second, "x" if second < 100 else "y")])
    driver.end()
    assert driver.late("a") == []
    rows = driver.rows("minutes")
    assert sum(row["rows"] - row["matched"] for row in rows) == 30 - 10
    assert sum(row["matched"] for row in rows) == sum(min(4, 10 - first) for first in range(10))


def test_results_of_windows_are_joined_with_each_other_and_with_records() -> None:
    app, left, right = declared()
    people = left.window(tumbling("10s"), by="k").agg(people="count(*)")
    auctions = right.window(tumbling("10s"), by="k").agg(auctions="count(*)")
    both = people.join_within(auctions, on=["k", "window_start", "window_end"], within="0s")
    app.sink(both, LogTopic("both"), name="both")
    highest = left.window(tumbling("10s")).agg(highest="max(n)")
    app.sink(left.join_within(highest, on={"n": "highest"}, within=("0s", "10s")), LogTopic("q7"), name="q7")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 1, n=5), left_row(2, 2, n=7), left_row(3, 12, "y", n=7)])
    driver.send("b", [right_row(1, 3), right_row(2, 15, "y"), right_row(3, 25)])
    driver.end()
    assert {(row["k"], row["people"], row["auctions"]) for row in driver.rows("both")} == {("x", 2, 1), ("y", 1, 1)}
    assert {row["id"] for row in driver.rows("q7")} == {2, 3}
    assert driver.late("a") == driver.late("b") == []


@pytest.mark.parametrize(("key", "where"), [(None, None), ("x", "n <> n_right")])
def test_rows_of_both_sides_of_a_full_join_with_one_key_and_no_match_are_two_results(key: str | None, where: str | None) -> None:
    """A view by that key would have one of them: it is refused, unless the user says by which key the latest is meant."""
    app = Declaration("alone")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("0s", idle="1 hour")}
    counted = [
        app.stream(name, "k string, at timestamp", **timed)
        .window(tumbling("10 seconds"), by="k")
        .agg(n="count(*)")
        .select("k, window_start, n")
        for name in ("left", "right")
    ]
    joined = counted[0].join_within(counted[1], on=["k", "window_start"], within="0s", how="full", where=where)
    app.sink(joined, LogTopic("out"), name="out")
    with pytest.raises(PlanError, match="nothing tells the records"):
        app.view("view", joined)
    with TestDriver(app) as driver:
        driver.send_all({"left": [{"k": key, "at": at(1)}], "right": [{"k": key, "at": at(2)}]})
        driver.end()
        assert ordered([(row["n"], row["n_right"]) for row in driver.rows("out")]) == [(1, None), (None, 1)]


@pytest.mark.parametrize(
    ("declared", "on", "told"),
    [
        ("j string", ["k", "window_start"], False),  # j may be null on both sides
        ("j string NOT NULL", ["k", "window_start"], True),
        ("j string", ["k"], True),  # a row that is there has a window
    ],
)
def test_a_view_of_a_full_join_needs_a_key_that_is_never_null_outside_of_what_is_compared(declared: str, on: list[str], told: bool) -> None:
    app = Declaration("alone")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("0s", idle="1 hour")}
    counted = [
        app.stream(name, f"k string, {declared}, at timestamp", **timed)
        .window(tumbling("10 seconds"), by=["k", "j"])
        .agg(n="count(*)")
        .select("k, j, window_start, n")
        for name in ("left", "right")
    ]
    joined = counted[0].join_within(counted[1], on=on, within="0s", how="full")
    if not told:
        with pytest.raises(PlanError, match="nothing tells the records"):
            app.view("view", joined)
        return
    app.view("view", joined)
    with TestDriver(app) as driver:
        driver.send_all({"left": [{"k": "x", "j": "a", "at": at(1)}], "right": [{"k": "y", "j": "a", "at": at(2)}]})
        driver.end()
        assert ordered([(row["n"], row["n_right"]) for row in driver.rows("view")]) == [(1, None), (None, 1)]


def test_three_streams_are_joined_one_after_the_other() -> None:
    app, left, right = declared("1 day")
    third = app.stream("c", "cid int, k string, at timestamp", key="k", time="at", watermark=bounded("10s", idle="1 day"))
    joined = left.join_within(right, on="k", within="5s", how="left").join_within(third, on="k", within="5s", how="left", suffix="_c")
    app.sink(joined, LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 0), left_row(2, 50)])
    driver.send("b", [right_row(3, 2), right_row(9, 300, "z")])
    driver.send("c", [{"cid": 4, "k": "x", "at": at(5)}, {"cid": 5, "k": "x", "at": at(53)}, {"cid": 9, "k": "z", "at": at(300)}])
    driver.end()
    assert {(row["id"], row["rid"], row["cid"]) for row in driver.rows("out")} == {(1, 3, 4), (2, None, 5)}


def test_a_version_after_the_moment_or_beyond_the_history_is_never_the_answer() -> None:
    app, left, right = declared()
    app.sink(left.join(right.to_table("k").as_of("at", history="20s"), on="k", how="left"), LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("b", [right_row(2, 20), right_row(1, 10), right_row(3, 60)])
    driver.send("a", [left_row(4, 15), left_row(5, 20), left_row(6, 5), left_row(7, 70)])
    driver.send("a", [left_row(8, 29), left_row(9, 45)])
    driver.end()
    assert [row["id"] for row in driver.late("a")] == [8]
    assert {(row["id"], row["rid"]) for row in driver.rows("out")} == {(4, 1), (5, 2), (6, None), (7, 3), (9, 2)}
    assert {row["step"]: row["rows"] for row in driver.state()} == {"a.join": 1}


def test_a_record_that_an_earlier_join_kept_waiting_is_not_beyond_the_history() -> None:
    app, left, right = declared()
    alone = left.join_within(right, on="k", within=("0s", "30s"), how="left").where("rid is null").select("id, k, at")
    app.sink(alone.join(right.to_table("k").as_of("at", history="0s"), on="k", how="left"), LogTopic("out"), name="out")
    driver = TestDriver(app)
    driver.send("b", [right_row(1, 5), right_row(2, 14), right_row(3, 50)])
    driver.send("a", [left_row(4, 10), left_row(5, 15), left_row(6, 4, "y")])
    for second in range(20, 70, 5):
        driver.send_all({"a": [left_row(second, second, "other")], "b": [right_row(second, second, "other")]})
    driver.end()
    assert driver.late("a") == []
    assert {(row["id"], row["rid"]) for row in driver.rows("out")} == {(5, 2), (6, None)}


def test_a_changed_price_updates_the_orders_of_its_product_and_nothing_else() -> None:
    app = Declaration("prices")
    orders = app.table("orders", "id int, product string", key="id", source=KAFKA)
    prices = app.table("prices", "product string, price int", key="product", source=KAFKA)
    joined = orders.join(prices, on="product", how="left", ttl=None)
    app.view("priced", joined)
    driver = TestDriver(app)
    driver.send("orders", [{"id": number, "product": f"p{number % 10}"} for number in range(100)])
    driver.send("prices", [{"product": f"p{number}", "price": number} for number in range(10)])
    before = counts(driver, "priced")["in"]
    driver.send("prices", [{"product": "p3", "price": 33}])
    assert counts(driver, "priced")["in"] - before == 10
    assert {row["id"] for row in driver.rows("priced") if row["price"] == 33} == set(range(3, 100, 10))
    driver.send("prices", [{"product": "p3", "price": 33}])
    assert counts(driver, "priced")["in"] - before == 10
    driver.remove("prices", [{"product": "p3"}])
    assert {row["id"] for row in driver.rows("priced") if row["price"] is None} == set(range(3, 100, 10))
    driver.send("orders", [{"id": 3, "product": "p4"}])
    assert next(row["price"] for row in driver.rows("priced") if row["id"] == 3) == 4


def test_rows_that_expire_in_a_table_leave_what_it_is_joined_with() -> None:
    app, left, right = declared()
    joined = left.to_table("id", ttl="30s").join(right.to_table("rid", ttl="1 minute"), on="k")
    app.view("out", joined)
    driver = TestDriver(app)
    driver.send("a", [left_row(1, 0)])
    driver.send("b", [right_row(2, 0)])
    assert len(driver.rows("out")) == 1
    driver.advance("2026-01-01T12:00:40Z")
    assert driver.rows("out") == []
    driver.advance("2026-01-01T12:02:00Z")
    assert {row["rows"] for row in driver.state()} == {0}


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_a_new_view_of_a_joined_table_begins_with_all_its_rows(how: str) -> None:
    def version(**views: str) -> Declaration:
        app = Declaration("shop")
        orders = app.table("orders", "id int, price double", key="id", source=KAFKA)
        prices = app.table("prices", "price double, label string", key="price", source=KAFKA)
        joined = orders.join(prices, on="price", how=how, ttl=None)
        for name, condition in views.items():
            app.view(name, joined.where(condition).with_columns(shown="upper(label)"))
        return app

    driver = TestDriver(version(old="true"), shards=3)
    prices = [{"price": price, "label": label} for price, label in ((1.0, "a"), (math.nan, "b"), (3.0, "c"))]
    orders = [{"id": number, "price": price} for number, price in enumerate([1.0, math.nan, 5.0, None, 1.0])]
    driver.send_all({"orders": orders, "prices": prices})
    assert "it begins with all live rows" in str(driver.evolve(version(old="true", new="true", some="label = 'a'"), shards=2))
    assert driver.rows("new") == []
    driver.send("orders", [{"id": 4, "price": 3.0}])
    assert sorted(map(repr, driver.rows("new"))) == sorted(map(repr, driver.rows("old")))
    assert [row["id"] for row in driver.rows("some")] == [0]
    driver.evolve(version(old="label is not null", new="true", some="label = 'a'"), shards=4)
    driver.remove("prices", [{"price": 1.0}])
    assert {row["label"] for row in driver.rows("old")} == {"b", "c"}
    assert driver.rows("some") == []


def test_a_new_view_of_a_union_of_tables_begins_with_all_their_rows() -> None:
    def version(*views: str) -> Declaration:
        app = Declaration("shop")
        orders = app.table("orders", "id int, product string", key="id", source=KAFKA)
        prices = app.table("prices", "product string, price int", key="product", source=KAFKA)
        joined = orders.join(prices, on="product", ttl=None).select("id, product", "'priced' as state")
        every = joined.union(orders.select("id, product", "'ordered' as state"))
        for name in views:
            app.view(name, every)
        return app

    driver = TestDriver(version("old"), shards=3)
    driver.send_all({"orders": [{"id": 1, "product": "pen"}, {"id": 2, "product": "cup"}], "prices": [{"product": "pen", "price": 1}]})
    driver.evolve(version("old", "new"), shards=2)
    driver.send("orders", [{"id": 2, "product": "pen"}])
    assert len(driver.rows("new")) == 4
    assert driver.rows("new") == driver.rows("old")


@pytest.mark.parametrize("broadcast", [False, True])
def test_a_stream_is_joined_with_an_aggregate_as_it_grows(broadcast: bool) -> None:
    app, left, right = declared()
    totals = right.group("k", ttl=None).agg(total="sum(m)")
    app.sink(left.join(totals, on="k", how="left", broadcast=broadcast), LogTopic("out"), name="out")
    driver = TestDriver(app, shards=3)
    for number in range(4):
        driver.send("b", [right_row(number, number, m=10)])
        driver.send("a", [left_row(number, number), left_row(number + 100, number, "none")])
        driver.restart()
    assert {row["id"]: row["total"] for row in driver.rows("out")} == {
        **{number: 10 * (number + 1) for number in range(4)},
        **{number + 100: None for number in range(4)},
    }


@pytest.mark.parametrize("key", ["id", ()])
@pytest.mark.parametrize("broadcast", [False, True])
def test_a_key_that_most_records_ask_for_has_no_shard_of_its_own_where_every_shard_has_the_table(broadcast: bool, key: Any) -> None:
    app = Declaration("hot")
    sales = app.stream("sales", "id int, product string, amount double", key=key)
    products = app.stream("products", "product string, price int").to_table("product")
    app.sink(sales.join(products, on="product", broadcast=broadcast, wait=None), LogTopic("out"), name="out")
    with TestDriver(app, shards=4) as driver:
        sold = [{"id": number, "product": "pen", "amount": -0.0} for number in range(2_000)]
        driver.send_all({"products": [{"product": "pen", "price": 10}], "sales": sold})
        assert [hot.key for hot in driver.hot_keys() if hot.trouble] == ([] if broadcast else ['{"product":"pen"}'])
        assert sorted(row["id"] for row in driver.rows("out")) == [*range(2_000)]
        assert {math.copysign(1, row["amount"]) for row in driver.rows("out")} == {-1}


def test_explain_says_what_each_side_keeps_and_for_how_long() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within=("0s", "30 minutes")), LogTopic("out"), name="out")
    app.sink(left.join(right.to_table("k").as_of("at", history="7 days"), on="k"), LogTopic("versions"), name="versions")
    words = str(explained(app.plan()))
    assert "inner join on k, right from 0 seconds before to 30 minutes after" in words
    assert "keeps the rows of both sides, bound: left 30 minutes, right 0 seconds after a row's time" in words
    assert "version valid at at, history 7 days" in words


def test_a_row_that_moves_between_shards_is_one_update_among_the_changes_as_facts() -> None:
    app = Declaration("facts")
    orders = app.table("orders", "id int, product string", key="id", source=KAFKA)
    prices = app.table("prices", "product string, price int", key="product", source=KAFKA)
    facts = orders.join(prices, on="product", ttl=None).where("price > 0").to_stream()
    app.sink(facts, LogTopic("facts"), name="facts")
    app.view("again", facts.to_table("id"))
    driver = TestDriver(app, shards=3)
    products = [f"p{number}" for number in range(8)]
    driver.send("prices", [{"product": product, "price": number + 1} for number, product in enumerate(products)])
    for product in products:
        driver.send("orders", [{"id": number, "product": product} for number in range(3)])
        driver.restart()
    driver.remove("orders", [{"id": 1}])
    said = [(row["id"], row["op"]) for row in driver.rows("facts")]
    assert sorted(said) == sorted([(number, "insert") for number in range(3)] + [(n, "update") for n in range(3)] * 7 + [(1, "delete")])
    assert {row["id"]: row["price"] for row in driver.rows("again")} == {0: 8, 2: 8}


def test_explain_says_which_times_would_meet_and_when_a_record_is_late() -> None:
    app, left, right = declared()
    app.sink(left.join_within(right, on="k", within=("5s", "30s"), how="left"), LogTopic("out"), name="out")
    noon = int(at(0).timestamp() * 1_000_000)
    (of_left,) = timings(app.plan(), "a", noon)
    assert of_left.turn == "meets records of 'b' from 2026-01-01 11:59:55 to 2026-01-01 12:00:30, and is settled"
    assert (of_left.fires_at, of_left.late_at) == (at(30.000001), at(0.000001))
    (of_right,) = timings(app.plan(), "b", noon)
    assert of_right.turn == "meets records of 'a' from 2026-01-01 11:59:30 to 2026-01-01 12:00:05"
    assert of_right.fires_at is None


def early(how: str = "left", bound: str = "10s") -> TestDriver:
    app = Declaration("early")
    left = app.stream("a", LEFT, key="id", time="at", watermark=bounded(bound, idle="1 minute"))
    right = app.stream("b", RIGHT, key="k", time="at", watermark=bounded(bound, idle="1 minute"))
    answers = left.join(right.to_table("k").as_of("at", history="1 hour"), on="k", how=how).emit(early=True, key="id")
    app.view("out", answers.select("id, m"))
    app.sink(answers.select("id, m").to_stream(), LogTopic("changes"), name="changes")
    return TestDriver(app, shards=1)


def changes_of(driver: TestDriver) -> list[tuple[str, int, int | None]]:
    return [(row["op"], row["id"], row["m"]) for row in driver.rows("changes")]


def test_an_early_answer_is_corrected_only_if_another_version_was_valid() -> None:
    driver = early()
    driver.send("b", [right_row(1, 10, m=5)])
    driver.send("a", [left_row(1, 15), left_row(2, 25), left_row(3, 15, "y")])
    assert changes_of(driver) == [("insert", 1, 5), ("insert", 2, 5), ("insert", 3, None)]
    driver.send("b", [right_row(2, 20, m=7), right_row(3, 16, "y", m=1)])
    assert len(changes_of(driver)) == 3, "nothing is corrected before the watermark has passed"
    driver.end()
    assert changes_of(driver)[3:] == [("update", 2, 7)]
    assert {row["id"]: row["m"] for row in driver.rows("out")} == {1: 5, 2: 7, 3: None}
    assert counts(driver, "a.join") == {"in": 6, "out": 6}


def test_an_early_answer_of_an_inner_join_may_come_only_in_the_end_and_may_be_replaced() -> None:
    driver = early("inner")
    driver.send("a", [left_row(1, 15), left_row(2, 15, "y"), left_row(3, 15, None)])
    assert changes_of(driver) == []
    driver.send("b", [right_row(1, 14, m=5), right_row(2, 15, "y", m=1)])
    driver.send("b", [right_row(3, 15, "y", m=2)])
    driver.restart()
    driver.end()
    assert sorted(changes_of(driver)) == [("insert", 1, 5), ("insert", 2, 2)]
    assert counts(driver, "a.join") == {"in": 6, "out": 5, "filtered": 1}


def test_a_version_that_is_replaced_at_its_own_time_corrects_the_early_answer() -> None:
    driver = early()
    driver.send("b", [right_row(1, 10, m=5)])
    driver.send("a", [left_row(1, 12)])
    driver.send("b", [right_row(2, 10, m=6)])
    driver.rescale(3)
    driver.end()
    assert changes_of(driver) == [("insert", 1, 5), ("update", 1, 6)]


def test_explain_says_that_early_answers_are_kept() -> None:
    app, left, right = declared()
    app.view("v", left.join(right.to_table("k").as_of("at", history="1 hour"), on="k").emit(early=True, key="id"))
    said = str(explained(app.plan()))
    (of_left,) = timings(app.plan(), "a", int(at(0).timestamp() * 1_000_000))
    assert (
        of_left.turn == "meets the version of 'b.table' at 2026-01-01 12:00:00, if 'at' is its event time, is answered at once, and proved"
    )
    assert "answered at once and corrected" in said
    assert "records that wait for the watermark, each with its early answer" in said


def test_records_of_several_streams_are_sent_in_one_epoch_and_a_stream_waits_for_its_table() -> None:
    app = Declaration("together")
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded("10s")}
    left, right = app.stream("a", LEFT, **timed), app.stream("b", RIGHT, **timed)
    app.sink(left.join(right.to_table("k"), on="k"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send_all({"a": [{"id": 1, "k": "x", "at": at(30)}], "b": [{"rid": 7, "k": "x", "at": at(25)}]})
        assert [(row["id"], row["rid"]) for row in driver.rows("out")] == [(1, 7)]
        assert driver.watermark == at(15)
        driver.send_all({"a": [{"id": 2, "k": "x", "at": at(50)}], "b": [{"rid": 8, "k": "x", "at": at(60)}]})
        assert [(row["id"], row["rid"]) for row in driver.rows("out")] == [(1, 7), (2, 8)]
        assert driver.watermark == at(40)
