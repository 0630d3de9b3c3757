"""Joins that would give wrong results, or keep rows forever unasked, are refused when they are declared, with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.core.errors import PlanError
from headrace.plan.explain import explained
from headrace.plan.waits import waits

KAFKA = hr.kafka("topic", servers="127.0.0.1:1")


class Shop:
    """An app with streams and tables to join."""

    def __init__(self) -> None:
        self.app = Declaration("shop")
        timed: dict[str, Any] = {"time": "at", "watermark": hr.bounded("10s", idle="1 minute")}
        self.orders = self.app.stream("orders", "id int, product string, n int, tags array<string>, at timestamp", key="id", **timed)
        self.clicks = self.app.stream("clicks", "product string, page string, at timestamp", **timed)
        self.numbers = self.app.stream("numbers", "product int, at timestamp", **timed)
        self.untimed = self.app.stream("untimed", "product string")
        self.prices = self.clicks.to_table("product")
        self.users = self.app.table("users", "id int, product string", key="id", source=KAFKA)

    def counted(self) -> Any:
        return self.clicks.window(hr.tumbling("1 minute"), by="product").agg(n="count(*)")

    def counted_behind_a_join(self) -> Any:
        unmatched = self.clicks.join_within(self.orders, on="product", within="1 minute", how="left")
        return unmatched.window(hr.tumbling("1 minute"), by="product").agg(n="count(*)")


def rows_of(keys: Any) -> list[dict[str, Any]]:
    return []


def rows_of_nothing() -> list[dict[str, Any]]:
    return []


REFUSED: list[tuple[str, str, Callable[[Shop], Any]]] = [
    ("stream join 'orders' x 'clicks' has no time bound", "join_within", lambda s: s.orders.join(s.clicks, on="product")),
    ("stream join 'orders' x 'clicks' has no time bound", "join_within", lambda s: s.orders.join_within(s.clicks, on="product")),
    ("table 'clicks.table' is joined with stream 'orders'", "'orders'.join('clicks.table', on=...)",
     lambda s: s.prices.join(s.orders, on="product")),
    ("'untimed' has no watermark", "watermark=", lambda s: s.orders.join_within(s.untimed, on="product", within="1s")),
    ("is string in 'orders', and 'product', which is int in 'numbers'", "cast(product as string)",
     lambda s: s.orders.join_within(s.numbers, on="product", within="1s")),
    ("'orders' has no such column", "columns: id", lambda s: s.orders.join_within(s.clicks, on="page", within="1s")),
    ("join on 'tags', which is array<string>", "with_columns", lambda s: s.orders.join_within(s.orders, on="tags", within="1s")),
    ("compares no column", "on=", lambda s: s.orders.join_within(s.clicks, on=[], within="1s")),
    ("join on 'product' twice", "once", lambda s: s.orders.join_within(s.clicks, on=["product", "product"], within="1s")),
    ("how='outer'", "full", lambda s: s.orders.join_within(s.clicks, on="product", within="1s", how="outer")),
    ("pick='any' is not known", "first", lambda s: s.orders.join_within(s.clicks, on="product", within="1s", pick="any")),
    ("pick='last' with how='full'", "inner", lambda s: s.orders.join_within(s.clicks, on="product", within="1s", pick="last", how="full")),
    ("has two columns 'at'", "suffix=", lambda s: s.orders.join_within(s.clicks, on="product", within="1s", suffix="")),
    ("where='page' is string, not a condition", "compare",
     lambda s: s.orders.join_within(s.clicks, on="product", within="1s", where="page")),
    ("needs Spark", "inner join", lambda s: s.orders.join_within(s.clicks, on="product", within="1s", where="soundex(page) = 'A'")),
    ("within=3 is not a time range", "before and after", lambda s: s.orders.join_within(s.clicks, on="product", within=3)),  # type: ignore[arg-type]
    ("are replaced or retracted later", ".to_stream()",
     lambda s: s.orders.join_within(s.counted().emit(until="1 hour"), on="product", within="1s")),
    ("'clicks.table' are replaced or retracted later", ".to_stream()", lambda s: s.orders.join_within(s.prices, on="product", within="1s")),
    ("the key of the table is id", "to_table(['product'])", lambda s: s.orders.join(s.users, on="product")),
    ("how='full'", "inner, left", lambda s: s.orders.join(s.prices, on="product", how="full")),
    ("wait='all'", "snapshot", lambda s: s.orders.join(s.prices, on="product", wait="all")),
    ("has no ttl, and rows of 'users.table' are kept forever", "ttl=None", lambda s: s.users.join(s.users, on="product")),
    ("ttl='1 day' of the join", "to_table(key, ttl=", lambda s: s.users.join(s.users, on="product", ttl="1 day")),
    ("broadcast=True", "leave it out", lambda s: s.users.join(s.users, on="product", ttl=None, broadcast=True)),
    ("results of 'clicks.window' are replaced or retracted later", ".to_stream()",
     lambda s: s.counted().emit(early="1s", mode="accumulating").join(s.prices, on="product")),
    ("as of 'n', which is int", "timestamp", lambda s: s.orders.join(s.prices.as_of("n", history="1 day"), on="product")),
    ("union of 'clicks.table' with one: 'clicks.table' as of a time", "stream.join(table.as_of(",
     lambda s: s.prices.union(s.prices.as_of("at", history="1 day"))),  # type: ignore[arg-type]
    ("view 'v': 'clicks.table' as of a time", "stream.join(table.as_of(", lambda s: s.app.view("v", s.prices.as_of("at", history="1 day"))),  # type: ignore[arg-type]
    ("a sink to topic out: 'clicks.table' as of a time", "stream.join(table.as_of(",
     lambda s: s.app.sink(s.prices.as_of("at", history="1 day"), hr.log("out"))),  # type: ignore[arg-type]
    ("join of 'orders' with one: 'clicks.table' as of a time", "stream.join(table.as_of(",
     lambda s: s.orders.join_within(s.prices.as_of("at", history="1 day"), on="product", within="1s")),  # type: ignore[arg-type]
    ("ttl='1 day' of the join of 'orders' and 'clicks.table'", "to_table(key, ttl=",
     lambda s: s.orders.join(s.prices, on="product", ttl="1 day")),
    ("ttl='1 day' of the join of 'orders' and 'clicks.table'", "to_table(key, ttl=",
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product", ttl="1 day")),
    ("wait=None of the join of 'orders' and 'clicks.table'", "leave it out",
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product", wait=None)),
    ("wait=None of the join of 'users.table' and 'users.table'", "leave it out",
     lambda s: s.users.join(s.users, on="product", ttl=None, wait=None)),
    ("'orders' has no such column", "columns: id", lambda s: s.orders.join(s.prices.as_of("when", history="1 day"), on="product")),
    ("whose versions are not facts of a stream", "to_table(key).as_of",
     lambda s: s.prices.where("page is not null").as_of("at", history="1 day")),  # type: ignore[attr-defined]
    ("'users' has no watermark", "watermark=", lambda s: s.orders.join(s.users.as_of("at", history="1 day"), on="id")),
    ("emit(early='1s') of 'orders.join'", "emit(early=True, key=",
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product").emit(early="1s")),
    ("emit(early=True) of 'orders.join' has no key", 'key="id"',
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product").emit(early=True)),
    ("by product, which is the key of the table", 'key="id"',
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product").emit(early=True, key="product")),
    ("'orders' has no such column", "columns: id",
     lambda s: s.orders.join(s.prices.as_of("at", history="1 day"), on="product").emit(early=True, key="number")),
    ("'tiers' is not a function", "(keys)", lambda s: s.orders.lookup("tiers", on="id", returns="tier int")),  # type: ignore[arg-type]
    ("topic tiers of Kafka cannot be asked for keys", "app.table",
     lambda s: s.orders.lookup(hr.kafka("tiers", servers="broker:9092"), on="id", returns="tier int")),  # type: ignore[arg-type]
    ("'users.table' cannot be asked for keys", "stream.join(", lambda s: s.orders.lookup(s.users, on="id", returns="tier int")),  # type: ignore[arg-type]
    ("is called with (keys)", "let it take these", lambda s: s.orders.lookup(rows_of_nothing, on="id", returns="tier int")),  # type: ignore[arg-type]
    ("'orders' has no such column", "columns: id", lambda s: s.orders.lookup(rows_of, on="user", returns="tier int")),
    ("lookup of 'orders' has no key", "on=", lambda s: s.orders.lookup(rows_of, on=[], returns="tier int")),
    ("one of them twice", "once", lambda s: s.orders.lookup(rows_of, on={"id": "x", "n": "x"}, returns="tier int")),
    ("lookup on 'tags', which is array<string>", "with_columns", lambda s: s.orders.lookup(rows_of, on="tags", returns="tier int")),
    ("has 'n', which is taken", "another name", lambda s: s.orders.lookup(rows_of, on="id", returns="n int")),
    ("has 'key', which is taken", "leave the key out", lambda s: s.orders.lookup(rows_of, on={"id": "key"}, returns="key int, tier int")),
    ("how='full' of the lookup", "inner, left", lambda s: s.orders.lookup(rows_of, on="id", returns="tier int", how="full")),
    ("cache=None of lookup(...) is no duration", "asks again", lambda s: s.orders.lookup(rows_of, on="id", returns="tier int", cache=None)),  # type: ignore[arg-type]
    ("timeout='0s' of lookup(...) is too short", "10 seconds",
     lambda s: s.orders.lookup(rows_of, on="id", returns="tier int", timeout="0s")),
    ("parallel=0", "1 or more", lambda s: s.orders.lookup(rows_of, on="id", returns="tier int", parallel=0)),
    ("retries=-1", "0 or more", lambda s: s.orders.lookup(rows_of, on="id", returns="tier int", retries=-1)),
    ("lookup of 'clicks.table', whose results change", ".to_stream()", lambda s: s.prices.lookup(rows_of, on="page", returns="tier int")),
    ("is declared by another app", "declare the topic", lambda s: s.orders.join(Shop().prices, on="product")),
    ("which is neither a stream nor a table", "app.stream(", lambda s: s.orders.join_within("clicks", on="product", within="1s")),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("fact", "remedy", "declare"), REFUSED, ids=[f"{n}-{fact[:40]}" for n, (fact, _, _) in enumerate(REFUSED)])
def test_a_join_that_cannot_be_right_is_refused(fact: str, remedy: str, declare: Callable[[Shop], Any]) -> None:
    with pytest.raises(PlanError) as refused:
        declare(Shop())
    assert fact in str(refused.value)
    assert remedy in (refused.value.hint or "")
    assert __file__ in (refused.value.where or "")


def timed_users(shop: Shop) -> Stream:
    """The rows of `users`, as their hint says."""
    timed: dict[str, Any] = {"time": "at", "watermark": hr.bounded("30 seconds", idle="1 minute")}
    return shop.app.stream("timed_users", "id int, product string, at timestamp", source=KAFKA, **timed)


def with_itself(table: Any) -> Any:
    return table.join(table, on="id")


TIMED = "app.stream('users', ..., time=, watermark=hr.bounded(\"30 seconds\"), source=...)"
# Joins of a table that has no event time: a part of the hint, and the join when it is followed.
UNTIMED: dict[str, tuple[Callable[[Shop], Any], str, Callable[[Shop], Any]]] = {
    "two tables without a ttl": (
        lambda s: s.users.join(s.users, on="id"),
        "ttl=None",
        lambda s: s.users.join(s.users, on="id", ttl=None),
    ),
    "two tables with a ttl": (
        lambda s: s.users.join(s.users, on="id"),
        TIMED,
        lambda s: with_itself(timed_users(s).to_table("id", ttl="30 days")),
    ),
    "within a time": (
        lambda s: s.orders.join_within(s.users, on="id", within="1s"),
        "stream.join(table, on=...)",
        lambda s: s.orders.join(s.users, on="id"),
    ),
    "changes within a time": (
        lambda s: s.orders.join_within(s.users.to_stream(), on="id", within="1s"),
        TIMED,
        lambda s: s.orders.join_within(timed_users(s), on="id", within="1s"),
    ),
    "as of a time": (
        lambda s: s.orders.join(s.users.as_of("at", history="1 day"), on="id"),
        TIMED + ", then .to_table(key)",
        lambda s: s.orders.join(timed_users(s).to_table("id").as_of("at", history="1 day"), on="id"),
    ),
    "a union of a stream and a table": (
        lambda s: s.untimed.with_columns(id="1").select("id, product").union(s.users).join(s.users, on="id", ttl=None),
        "make 'untimed.with_columns.select' a table, too",
        lambda s: (
            s.untimed.with_columns(id="1").select("id, product, 'one' as origin").to_table("id")
            .union(s.users.with_columns(origin="'two'")).join(s.users, on="id", ttl=None)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNTIMED)
def test_the_hint_of_a_join_of_a_table_without_event_time_is_accepted_when_it_is_followed(case: str) -> None:
    refused, said, followed = UNTIMED[case]
    with pytest.raises(PlanError) as error:
        refused(Shop())
    assert said in (error.value.hint or "")
    shop = Shop()
    shop.app.sink(followed(shop), hr.log("out"))
    assert shop.app.plan().sources


# Results that change, and what the hint says to leave out: nothing where the results change without it, too.
CHANGING: dict[str, tuple[Callable[[Shop], Any], str]] = {
    "until": (lambda s: s.counted().emit(until="1 hour"), "leave out until= of 'clicks.window'"),
    "early and every": (lambda s: s.counted().emit(early="10s", every=5), "leave out early= and every= of 'clicks.window'"),
    "a filter": (lambda s: s.counted().emit(until="1 hour").where("n > 1"), "leave out until= of 'clicks.window'"),
    "panes that repeat": (lambda s: s.counted().emit(early="10s", mode="accumulating"), "leave out early= of 'clicks.window'"),
    "a join": (lambda s: s.counted_behind_a_join(), ""),
    "a join and until": (lambda s: s.counted_behind_a_join().emit(until="1 hour"), ""),
    "a table": (lambda s: s.prices, ""),
}


@pytest.mark.parametrize("cause", CHANGING)
def test_the_hint_of_a_join_within_a_time_of_what_changes_names_what_makes_it_change(cause: str) -> None:
    made, left_out = CHANGING[cause]
    shop = Shop()
    with pytest.raises(PlanError, match="are replaced or retracted later") as refused:
        shop.orders.join_within(made(shop), on="product", within="1s")
    hint = refused.value.hint or ""
    assert left_out in hint
    assert ("leave out" in hint) == bool(left_out)
    # Each part of the hint, followed.
    again = shop.counted().emit(early="10s", mode="retracting") if 'mode="retracting"' in hint else made(shop)
    facts = shop.orders.join_within(again.to_stream(), on="product", within="1s")
    tables = shop.orders.to_table("id").join(made(shop).to_table("product"), on="product", ttl=None)
    shop.app.sink(facts, hr.log("facts"))
    shop.app.view("tables", tables)
    assert hr.TestDriver(shop.app).rows("tables") == []


def test_columns_of_the_right_follow_with_a_suffix_where_a_name_is_taken() -> None:
    shop = Shop()
    joined = shop.orders.join_within(shop.clicks, on="product", within="1s", how="left")
    assert joined.columns.names == ["id", "product", "n", "tags", "at", "page", "at_right"]
    mapped = shop.users.join(shop.users, on={"product": "product"}, ttl=None, suffix="_other")
    assert mapped.columns.names == ["id", "product", "id_other"]
    assert mapped.node.keys == ("id", "id_other")


def test_a_name_that_differs_in_case_only_is_taken() -> None:
    app = Declaration("cases")
    timed: dict[str, Any] = {"time": "at", "watermark": hr.bounded("10s", idle="1 minute")}
    left = app.stream("left", "id int, Page string, at timestamp", **timed)
    right = app.stream("right", "id int, page string, PAGE_RIGHT string, at timestamp", **timed)
    joined = left.join_within(right.select("id, page, at"), on="id", within="1s")
    assert joined.columns.names == ["id", "Page", "at", "page_right", "at_right"]
    assert joined.where("page = PAGE_right").columns.names == joined.columns.names
    with pytest.raises(PlanError, match="has two columns 'page_right' and 'PAGE_RIGHT'") as refused:
        left.join_within(right, on="id", within="1s")
    assert "give another suffix= than '_right'" in (refused.value.hint or "")
    with pytest.raises(PlanError, match="has 'PAGE', which is taken"):
        left.lookup(rows_of, on="id", returns="PAGE string")


@pytest.mark.parametrize(("how", "keys"), [("inner", ("n",)), ("left", ("n",)), ("right", ("n", "id")), ("full", ("n", "id"))])
def test_the_key_of_joined_tables_is_no_longer_than_it_must_be(how: str, keys: tuple[str, ...]) -> None:
    shop = Shop()
    orders = shop.orders.to_table("n")
    assert isinstance(orders.join(shop.users, on={"id": "id"}, how=how, ttl=None), Stream)
    assert orders.join(shop.users, on="id", how=how, ttl=None).node.keys == keys


@pytest.mark.parametrize(
    ("made", "by"),
    [
        (lambda s: s.orders, ("id",)),
        (lambda s: s.orders.where("n > 1").key_by("n"), ("n",)),
        (lambda s: s.orders.select("product, n, tags, at, cast(n as double) as price"), ("product", "n", "at")),
    ],
)
def test_records_go_by_their_own_key_where_every_shard_has_the_table(made: Callable[[Shop], Stream], by: tuple[str, ...]) -> None:
    shop = Shop()
    shop.app.sink(made(shop).join(shop.prices, on="product", broadcast=True), hr.log("out"))
    words = {step.step: step.hot_keys for step in explained(shop.app.plan(), 4).steps}
    assert f"all records of {', '.join(by)} go to one shard" in words.values()


def test_a_stream_waits_for_the_table_that_it_meets_unless_it_is_told_not_to() -> None:
    shop = Shop()
    meets = shop.orders.join(shop.prices, on="product")
    assert waits([meets.node]) == {"orders": frozenset({"clicks"})}
    assert waits([shop.orders.join(shop.prices, on="product", wait=None).node]) == {}
    assert waits([shop.clicks.join(shop.prices, on="product").node]) == {}
