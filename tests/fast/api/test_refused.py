"""Declarations that would have given wrong results are refused, with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import HeadraceError

MINUTE = hr.tumbling("1 minute")
KAFKA = {"servers": "broker:9092"}


def app(home: Path, name: str = "shop") -> tuple[hr.App, hr.Stream]:
    made = hr.App(name, home=home)
    schema = "id string, amount int, tags array<string>, at timestamp"
    return made, made.stream("orders", schema, key="id", time="at", watermark=hr.bounded("10 seconds"))


def planned(declare: Callable[[hr.App, hr.Stream], Any]) -> Callable[[hr.App, hr.Stream], Any]:
    def run(made: hr.App, orders: hr.Stream) -> None:
        declare(made, orders)
        made.plan()

    return run


def counted(stream: hr.Stream) -> Any:
    return stream.window(MINUTE, by="id").agg(n="count(*)")


def none() -> None: ...


REFUSED: list[tuple[str, Callable[[hr.App, hr.Stream], Any]]] = [
    ("emit() of 'orders.window' a second time", lambda _, orders: counted(orders).emit(early="5 seconds").emit(until="1 hour")),
    ("emit() of 'orders.window' a second time", lambda _, orders: counted(orders).emit().emit()),
    ("would write to topic 'orders', which has the records of stream 'orders'", lambda made, orders: made.sink(orders, hr.log("orders"))),
    ("which has the late records of stream 'orders'", lambda made, orders: made.sink(orders, hr.log("orders.late"))),
    ("which has the dead letters of 'orders'", lambda made, orders: made.sink(orders, hr.log("orders.dead"))),
    ("which has the accounts of the job", lambda made, orders: made.sink(orders, hr.log("shop.accounting"))),
    ("which has the rows of view 'v'", lambda made, orders: (made.view("v", counted(orders)), made.sink(orders, hr.log("v")))),
    ("which has the rows of view 'v'", planned(lambda made, orders: (made.sink(orders, hr.log("v")), made.view("v", counted(orders))))),
    ("which has the records of stream 'late-one'", planned(
        lambda made, orders: (made.sink(orders, hr.log("late-one")), made.stream("late-one", "id string")))),
    ("would write to topic 'trips', which has the records of stream 'from-kafka'", lambda made, _: made.sink(
        made.stream("from-kafka", "id string", source=hr.kafka("trips", **KAFKA)), hr.kafka("trips", **KAFKA))),
    ("'orders.with_columns' replaces column 'at', the event time of stream 'orders'", planned(
        lambda made, orders: made.view("v", counted(orders.with_columns(at="at + interval 1 hour"))))),
    ("'orders.select' replaces column 'at'", planned(
        lambda made, orders: made.view("v", counted(orders.select("id, date_trunc('day', at) as at").where("id is not null"))))),
    ("replaces column 'at'", planned(lambda made, orders: made.sink(
        orders.with_columns(at="at + interval 1 hour").with_previous("amount", by="id", ttl=None), hr.log("out")))),
    ("process(...) of 'orders': none() -> 'None' is called with (event, state, timers)", lambda _, orders: orders.process(none, by="id")),
    ("is called with (event, state, timers)", lambda _, orders: orders.process(lambda a, b, c, d: None, by="id")),
    ("is called with (events, states)", lambda _, orders: orders.process(lambda a, b, c: None, by="id", vectorised=True, ttl=None)),
    ("on_timer= of 'orders': none() -> 'None' is called with (timer, state, timers)",
     lambda _, orders: orders.process(lambda a, b, c: None, by="id", on_timer=none, ttl="1 day")),
    ("process(...) of 'orders': 5 is not a function", lambda _, orders: orders.process(5, by="id")),
    ("is called with (frame)", lambda _, orders: orders.transform(lambda: None)),
    ("top(-1, by='n') of 'orders.window' keeps no row", lambda _, orders: counted(orders).top(-1, by="n")),
    ("top(1, by='tags') of 'orders': 'tags' is array<string>", lambda _, orders: orders.top(1, by="tags")),
    ("source='kafka' of stream 't' cannot be read", lambda made, _: made.stream("t", "k string", source="kafka")),
    ("of stream 't' cannot be read", lambda made, _: made.stream("t", "k string", source=hr.postgres("t", dsn="postgresql://host/db"))),
    ("into=None) has no name for the elements", lambda _, orders: orders.flat_map("tags", None)),  # type: ignore[arg-type]
    ("agg('count(*)') has no name for its result", lambda _, orders: orders.window(MINUTE).agg("count(*)")),
    ("agg('count(*)') has no name for its result", lambda _, orders: orders.group("id", ttl=None).agg("count(*)")),
    ("calendar(5) is not a unit of a calendar", lambda *_: hr.calendar(5, zone="UTC")),  # type: ignore[arg-type]
    ("there is no time zone None", lambda *_: hr.calendar("1 day", zone=None)),  # type: ignore[arg-type]
    ("custom(...): <lambda>() is called with (times)", lambda *_: hr.custom(lambda: 5)),  # type: ignore[arg-type, misc]
    ("a sink to topic x is called 5", lambda made, orders: made.sink(orders, hr.log("x"), name=5)),  # type: ignore[arg-type]
    ("servers=None is not a text", lambda *_: hr.kafka("t", servers=None)),  # type: ignore[arg-type]
    ("'a b' is not a name of a Kafka topic", lambda *_: hr.kafka("a b", **KAFKA)),
    ("start=5 is not a place in a topic", lambda *_: hr.kafka("t", start=5, **KAFKA)),  # type: ignore[arg-type]
    ("dsn=None is not a text", lambda *_: hr.postgres("t", dsn=None)),  # type: ignore[arg-type]
    ("5 is not a name of a table", lambda *_: hr.postgres(5, dsn="postgresql://host/db")),  # type: ignore[arg-type]
    ("5 is not a directory", lambda *_: hr.parquet(5)),  # type: ignore[arg-type]
    ("None is not a directory", lambda *_: hr.delta(None)),  # type: ignore[arg-type]
    ("an aggregate of your own cannot be called 5", lambda made, _: made.aggregate(5, 5)),  # type: ignore[arg-type]
    ("TestDriver(None) is not given an app", lambda *_: hr.TestDriver(None)),  # type: ignore[arg-type]
    ("5 is not an app name", lambda made, _: hr.App(5, settings=made.settings)),  # type: ignore[arg-type]
    ("the columns are ['id string'], which is list", lambda made, _: made.stream("s", ["id string"])),  # type: ignore[arg-type]
    ("column 'id' is declared as <class 'str'>", lambda made, _: made.stream("s", {"id": str})),  # type: ignore[dict-item]
    ("align=-5 seconds of stream 's' is negative", lambda made, _: made.stream("s", "at timestamp", align=timedelta(seconds=-5))),
    ("for_=-5 seconds of alert 'restarts' is negative",
     lambda made, _: made.alert("restarts > 1", for_=timedelta(seconds=-5), message="", name="restarts")),
    ("'sec' is not a unit of a timestamp: it is s, ms or us", lambda made, _: made.stream("s", "at timestamp(sec)")),
    ("'3' is not a unit of a timestamp", lambda made, _: made.stream("s", "at timestamp(3)")),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "declare"), REFUSED, ids=[fact[:60] for fact, _ in REFUSED])
def test_it_is_refused_at_the_line_that_says_it(fact: str, declare: Callable[[hr.App, hr.Stream], Any], tmp_path: Path) -> None:
    made, orders = app(tmp_path)
    with pytest.raises(HeadraceError) as refused:
        declare(made, orders)
    assert fact in refused.value.fact
    assert refused.value.hint
    assert refused.value.where is None or "test_refused.py" in refused.value.where


def test_a_column_like_the_time_may_be_made_where_nothing_goes_by_time(tmp_path: Path) -> None:
    made, orders = app(tmp_path)
    made.view("per_day", orders.with_columns(at="date_trunc('day', at)").group("at", ttl=None).agg(n="count(*)"))
    made.sink(orders.select("id, date_trunc('hour', at) as at"), hr.log("hours"))
    made.view("v", counted(orders.with_columns(hour="date_trunc('hour', at)").select("id, at, hour")))
    made.plan()


def test_a_stream_of_another_app_is_refused(tmp_path: Path) -> None:
    made, orders = app(tmp_path)
    other, others = app(tmp_path, "other")
    for declare in (lambda: orders.union(others), lambda: made.view("v", counted(others)), lambda: made.sink(others, hr.log("out"))):
        with pytest.raises(hr.PlanError, match=r"'orders(\.window)?' is declared by another app, 'other'"):
            declare()
    other.sink(others.union(others), hr.log("twice"))
    with hr.TestDriver(other) as driver:
        driver.send("orders", [{"id": "a", "at": "2026-01-01T12:00:00Z"}])
        assert len(driver.rows("orders.union.sink")) == 2


@pytest.mark.parametrize(
    ("fact", "options"),
    [
        ("shards is 0", {"shards": 0}), ("shards is -1", {"shards": -1}), ("shards is True", {"shards": True}),
        ("partitions is 0", {"partitions": 0}), ("partitions of 'orders' is 0", {"partitions": {"orders": 0}}),
        ("partitions= names 'other', which is not a stream", {"partitions": {"other": 2}}),
        ("'noon' is not a time", {"starts_at": "noon"}), ("1767268800 is not a time", {"starts_at": 1767268800}),
    ],
)  # fmt: skip
def test_a_driver_that_could_not_run_is_refused(fact: str, options: dict[str, Any], tmp_path: Path) -> None:
    made, orders = app(tmp_path)
    made.view("v", counted(orders))
    with pytest.raises(hr.PlanError) as refused:
        hr.TestDriver(made, **options)
    assert fact in refused.value.fact


def test_the_wall_clock_is_not_set_back(tmp_path: Path) -> None:
    made, orders = app(tmp_path)
    made.view("v", counted(orders))
    with hr.TestDriver(made) as driver, pytest.raises(hr.PlanError, match="would set the wall clock back"):
        driver.wait(timedelta(seconds=-5))


def union_of(mine: str, theirs: str) -> Declaration:
    made = Declaration("union")
    made.view("all", made.stream("one", "k string, n int, d decimal(10,2), at timestamp").select(mine).union(
        made.stream("two", "k string, n int, s string").select(theirs)).to_table("k"))  # fmt: skip
    return made


def test_null_in_a_union_takes_the_type_of_the_other_side() -> None:
    with hr.TestDriver(union_of("k, n, null as s, d, null as nothing_here", "k, null as n, s, null as d, s as nothing_here")) as driver:
        driver.send("one", [{"k": "a", "n": 1, "d": 5}])
        driver.send("two", [{"k": "b", "s": "x"}])
        rows = {row["k"]: row for row in driver.rows("all")}
        assert rows["a"] == {"k": "a", "n": 1, "s": None, "d": 5, "nothing_here": None}
        assert rows["b"] == {"k": "b", "n": None, "s": "x", "d": None, "nothing_here": "x"}


def test_columns_of_null_alone_are_refused_where_no_side_has_a_type() -> None:
    with pytest.raises(hr.PlanError, match=r"column 'x' of .* has no type"):
        union_of("k, null as x", "k, null as x").plan()


@pytest.mark.parametrize(
    ("mine", "theirs", "difference"),
    [
        ("k, n", "k, s", "'n' is only in 'one.select'; 's' is only in 'two.select'"),
        ("k, n", "k, s as n", "'n' is int in 'one.select' and string in 'two.select'"),
        ("k, n", "n, k", "their order is k, n and n, k"),
        ("k, n", "k, n, s", "'s' is only in 'two.select'"),
    ],
)
def test_it_is_said_how_columns_of_a_union_differ(mine: str, theirs: str, difference: str) -> None:
    with pytest.raises(hr.PlanError) as refused:
        union_of(mine, theirs)
    assert refused.value.fact == f"union of 'one.select' and 'two.select': their columns differ: {difference}"
