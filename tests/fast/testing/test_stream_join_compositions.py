"""Joins of streams before and behind other steps, whatever the order, batches, partitions, shards and crashes: what DuckDB makes of all of
the input."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, count_window, hopping, session, tumbling
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds, soaked
from tests.support.joining import LEFT, RIGHT, Row, Sent, asked, records, run, shown, way
from tests.support.streams import at

THIRD = "cid int, k string, v int, at timestamp"
COLUMNS = {"a": LEFT, "b": RIGHT, "c": THIRD}
BOUND = 15


@dataclass(frozen=True)
class Streams:
    a: Any
    b: Any
    c: Any


@dataclass(frozen=True)
class Composition:
    """Results made of three streams, and the same in SQL, with their columns in order."""

    made: Callable[[Streams], Any]
    sql: str
    columns: str = "id, rid, k"


def streams(app: Declaration) -> Streams:
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded(f"{BOUND}s", idle="1 day")}
    return Streams(*(app.stream(name, kinds, **timed) for name, kinds in COLUMNS.items()))


def sent_to_three(chance: random.Random) -> list[Sent]:
    more = [("c", {"cid": row["rid"], "k": row["k"], "v": row["m"], "at": row["at"]}) for name, row in records(chance, 30) if name == "b"]
    return [*records(chance, 36), *more]


def asked_of(sql: str, sent: Sequence[Sent]) -> list[tuple[Any, ...]]:
    return asked(sql, **{name: ([row for stream, row in sent if stream == name], kinds) for name, kinds in COLUMNS.items()})


def versions(stream: Any) -> Any:
    return stream.to_table("k").as_of("at", history="1 hour")


def looked_up(keys: pa.Table) -> list[dict[str, Any]]:
    return [{"k": key, "size": len(key)} for key in keys["k"].to_pylist() if key != "b"]


NEAR = "b.at between a.at - interval 4 second and a.at + interval 9 second"
WITHIN = ("4s", "9s")
TEN = 'time_bucket(interval 10 second, "at")'
TWO = f"(select id, rid, a.k as k, n, m, greatest(a.at, b.at) as at from a join b on a.k = b.k and {NEAR})"
VALID = "(select id, rid, a.k as k, n, m, a.at as at from a asof {} join b on a.k = b.k and a.at >= b.at)"
COMPOSITIONS: Mapping[str, Composition] = {
    "union of joins": Composition(
        lambda s: (
            s.a.join_within(s.b, on="k", within=WITHIN)
            .select("id, rid, k")
            .union(s.a.join_within(s.b, on="k", within="1s", how="full").select("id, rid, k"))
        ),
        f"""select id, rid, a.k from a join b on a.k = b.k and {NEAR} union all
            select id, rid, coalesce(a.k, b.k) from a full join b on a.k = b.k
            and b.at between a.at - interval 1 second and a.at + interval 1 second""",
    ),
    "join of a union": Composition(
        lambda s: s.a.union(s.a.with_columns(id="id + 1000")).join_within(s.b, on="k", within=WITHIN, how="left"),
        f'select id, rid, a.k from (select * from a union all select id + 1000, k, n, "at" from a) a left join b on a.k = b.k and {NEAR}',
    ),
    "filters on both sides": Composition(
        lambda s: s.a.where("n > 1").join_within(s.b.where("m is null or m < 3"), on="k", within=WITHIN, how="full"),
        f"""select id, rid, coalesce(a.k, b.k) from (select * from a where n > 1) a
            full join (select * from b where m is null or m < 3) b on a.k = b.k and {NEAR}""",
    ),
    "an empty right stream": Composition(
        lambda s: s.a.join_within(s.b.where("rid < 0"), on="k", within=WITHIN, how="full"), "select id, null, k from a"
    ),
    "two empty streams": Composition(
        lambda s: s.a.where("id < 0").join_within(s.b.where("rid < 0"), on="k", within=WITHIN, how="full"),
        "select id, id, k from a where false",
    ),
    "keys that are all null": Composition(
        lambda s: s.a.with_columns(k="cast(null as string)").join_within(s.b, on="k", within=WITHIN, how="full"),
        "select id, null, null from a union all select null, rid, k from b",
    ),
    "very long keys": Composition(
        lambda s: s.a.with_columns(x="repeat(k, 20000)").join_within(
            s.b.with_columns(x="repeat(k, 20000)").select("rid, x, at"), on="x", within=WITHIN
        ),
        f"select id, rid, a.k from a join b on a.k = b.k and {NEAR}",
    ),
    "decimals of one scale": Composition(
        lambda s: s.a.with_columns(x="cast(n / 2 as decimal(9, 1))").join_within(
            s.b.with_columns(x="cast(m / 2 as decimal(9, 1))").select("rid, x, at"), on="x", within=WITHIN, how="left"
        ),
        f"select id, rid, a.k from a left join b on n = m and {NEAR}",
    ),
    "several columns of several types": Composition(
        lambda s: s.a.with_columns(x="n > 2", y="n % 2").join_within(
            s.b.with_columns(x="m > 2", z="m % 2"), on={"k": "k", "x": "x", "y": "z"}, within=WITHIN
        ),
        f"select id, rid, a.k from a join b on a.k = b.k and (n > 2) = (m > 2) and n % 2 = m % 2 and {NEAR}",
    ),
    "join, windows": Composition(
        lambda s: (
            s.a.join_within(s.b, on="k", within=WITHIN, how="left").window(tumbling("10s"), by="k").agg(rows="count(*)", met="count(rid)")
        ),
        f"""select k, {TEN} as w, count(*), count(rid)
            from (select a.k as k, rid, greatest(a.at, b.at) as at from a left join b on a.k = b.k and {NEAR}) group by all""",
        "k, window_start, rows, met",
    ),
    "join, hopping windows": Composition(
        lambda s: s.a.join_within(s.b, on="k", within=WITHIN).window(hopping("20s", every="10s")).agg(rows="count(*)", total="sum(n)"),
        f"""select w, count(*), sum(n)::bigint from (select {TEN} as w, n from {TWO}
            union all select {TEN} - interval 10 second, n from {TWO}) group by w""",
        "window_start, rows, total",
    ),
    "join, sessions": Composition(
        lambda s: s.a.join_within(s.b, on="k", within=WITHIN).window(session("5s"), by="k").agg(rows="count(*)"),
        f"""select k, count(*) from (
            select k, coalesce(sum(begins) over (partition by k order by "at" range unbounded preceding), 0) as number
            from (select k, "at", ("at" - lag("at") over (partition by k order by "at") > interval 5 second)::int as begins from {TWO}))
            group by k, number""",
        "k, rows",
    ),
    "windows joined with windows": Composition(
        lambda s: (
            s.a.window(tumbling("10s"), by="k")
            .agg(rows="count(*)")
            .select("k, window_start, rows")
            .join_within(
                s.b.window(tumbling("10s"), by="k").agg(others="count(*)").select("k, window_start, others"),
                on=["k", "window_start"],
                within="0s",
                how="full",
            )
        ),
        f"""select coalesce(x.k, y.k), coalesce(x.w, y.w), rows, others
            from (select k, {TEN} as w, count(*) as rows from a group by all) x
            full join (select k, {TEN} as w, count(*) as others from b group by all) y on x.k = y.k and x.w = y.w""",
        "k, window_start, rows, others",
    ),
    "join, table, table": Composition(
        lambda s: (
            s.a.join_within(s.b, on="k", within=WITHIN)
            .select("id, rid, k")
            .to_table(["id", "rid"])
            .join(s.c.to_table("cid"), on="k", how="left", ttl=None)
        ),
        f"select id, rid, x.k, cid from {TWO} x left join c on x.k = c.k",
        "id, rid, k, cid",
    ),
    "join, table, group, table": Composition(
        lambda s: (
            s.a.join_within(s.b, on="k", within=WITHIN)
            .to_table(["id", "rid"])
            .group("k", ttl=None)
            .agg(pairs="count(*)")
            .join(s.c.to_table("cid").group("k", ttl=None).agg(others="count(*)"), on="k", how="full", ttl=None)
        ),
        # A full join makes a dead letter of a row whose whole key is null.
        f"""select coalesce(x.k, y.k), pairs, others from (select k, count(*) as pairs from {TWO} group by k) x
            full join (select k, count(*) as others from c where k is not null group by k) y on x.k = y.k""",
        "k, pairs, others",
    ),
    "versions, joined within a time": Composition(
        lambda s: s.a.join(versions(s.b), on="k", how="left").select("id, rid, k, at").join_within(s.c, on="k", within=WITHIN, how="left"),
        f"""select id, rid, x.k, cid from {VALID.format("left")} x left join c
            on x.k = c.k and c.at between x.at - interval 4 second and x.at + interval 9 second""",
        "id, rid, k, cid",
    ),
    "versions of versions": Composition(
        lambda s: s.a.join(versions(s.b), on="k", how="left").select("id, rid, k, at").join(versions(s.c), on="k", how="left"),
        f"select id, rid, x.k, cid from {VALID.format('left')} x asof left join c on x.k = c.k and x.at >= c.at",
        "id, rid, k, cid",
    ),
    "versions that say that there is none": Composition(
        lambda s: s.a.join(versions(s.b), on="k").where("m is not null"),
        f"select id, rid, k from {VALID.format('inner')} where m is not null",
    ),
    "versions of a filter": Composition(
        lambda s: s.a.join(versions(s.b.where("m > 1")), on="k", how="left"),
        "select id, rid, a.k from a asof left join (select * from b where m > 1) b on a.k = b.k and a.at >= b.at",
    ),
    "versions, windows": Composition(
        lambda s: s.a.join(versions(s.b), on="k", how="left").window(tumbling("10s"), by="k").agg(rows="count(*)", total="sum(m)"),
        f"select k, {TEN}, count(*), sum(m)::bigint from {VALID.format('left')} group by all",
        "k, window_start, rows, total",
    ),
    "early versions, group, table": Composition(
        lambda s: (
            s.a.join(versions(s.b), on="k")
            .emit(early=True, key="id")
            .group("k", ttl=None)
            .agg(rows="count(*)", total="sum(m)")
            .join(s.c.to_table("cid"), on="k", ttl=None)
        ),
        f"""select x.k, rows, total, cid
            from (select k, count(*) as rows, sum(m)::bigint as total from {VALID.format("inner")} group by k) x join c on x.k = c.k""",
        "k, rows, total, cid",
    ),
    "early versions, the best": Composition(
        lambda s: s.a.join(versions(s.b), on="k").emit(early=True, key="id").to_table("id").top(3, by="id"),
        f"select id, rid, k from {VALID.format('inner')} order by id desc limit 3",
    ),
    "versions of an empty table": Composition(
        lambda s: s.a.join(versions(s.b.where("rid < 0")), on="k", how="left"), "select id, null, k from a"
    ),
    "a join picked, then a table of it": Composition(
        lambda s: (
            s.a.join_within(s.b, on="k", within=WITHIN, how="left", pick="last")
            .select("id, rid, k")
            .to_table("id")
            .join(s.c.select("cid, v").to_table("cid"), on={"rid": "cid"}, how="left", ttl=None)
        ),
        f"""select id, rid, x.k, v from (select id, rid, a.k as k from a left join b on a.k = b.k and {NEAR}
            qualify row_number() over (partition by id order by b.at desc) = 1) x left join c on rid = cid""",
        "id, rid, k, v",
    ),
    "lookup behind a join": Composition(
        lambda s: s.a.join_within(s.b, on="k", within=WITHIN).lookup(looked_up, on="k", returns="size int", how="left"),
        f"select id, rid, k, case when k <> 'b' then length(k) end from {TWO}",
        "id, rid, k, size",
    ),
    "lookup behind changes of windows": Composition(
        lambda s: (
            s.a.window(tumbling("10s"), by="k")
            .agg(rows="count(*)")
            .emit(until="5 minutes")
            .to_stream()
            .lookup(looked_up, on="k", returns="size int")
            .to_table(["k", "window_start"])
        ),
        f"select k, {TEN} as w, count(*), 1 from a where k <> 'b' group by all",
        "k, window_start, rows, size",
    ),
    "corrected windows joined with a table": Composition(
        lambda s: (
            s.a.window(tumbling("10s"), by="k")
            .agg(rows="count(*)")
            .emit(early="5s", until="5 minutes")
            .join(s.c.to_table("cid"), on="k", how="left", ttl=None)
        ),
        f"select x.k, w, rows, cid from (select k, {TEN} as w, count(*) as rows from a group by all) x left join c on x.k = c.k",
        "k, window_start, rows, cid",
    ),
    "dedup, join": Composition(
        lambda s: s.a.union(s.a).dedup("id", ttl="5 minutes").join_within(s.b, on="k", within=WITHIN), f"select id, rid, k from {TWO}"
    ),
    "previous records, join": Composition(
        lambda s: s.a.where("k is not null").with_previous("id", by="k", ttl="1 hour").join_within(s.b, on="k", within=WITHIN, how="left"),
        f"""select id, previous, rid, a.k
            from (select *, lag(id) over (partition by k order by "at") as previous from a where k is not null) a
            left join b on a.k = b.k and {NEAR}""",
        "id, previous_id, rid, k",
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_composition_has_the_results_of_sql(name: str) -> None:
    composition = COMPOSITIONS[name]
    for seed in seeds(soaked(8, 2)):
        chance = random.Random(f"{name} {seed}")
        app = Declaration("composition")
        made = composition.made(streams(app))
        if made.node.changes or made.node.keys:
            app.view("out", made)
        else:
            app.sink(made, LogTopic("out"), name="out")
        read = {source.name for source in app.plan().sources}
        sent = [one for one in sent_to_three(chance) if one[0] in read]
        expected = asked_of(composition.sql, sent)
        for _ in range(2):
            driver = run(app, way(chance, sent, BOUND))
            assert all(driver.late(stream) == [] for stream in read)
            assert shown(driver, "out", *composition.columns.split(", ")) == expected, f"seed {seed}"


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_rows_of_tables_that_both_expire_are_joined_for_as_long_as_they_live(how: str) -> None:
    for seed in seeds(soaked(24, 8)):
        chance = random.Random(f"{how} {seed}")
        app = Declaration("expiring")
        s = streams(app)
        app.view("out", s.a.to_table("id", ttl="20s").join(s.b.to_table("rid", ttl="40s"), on="k", how=how))
        sent = [one for one in sent_to_three(chance) if one[0] in "ab"]
        came: list[Sent] = []

        taken = way(chance, sent, BOUND)
        driver = TestDriver(app, shards=taken.shards, partitions=taken.partitions)
        for epoch in taken.epochs:
            driver.send_all(epoch)
            came += [(stream, row) for stream, rows in epoch.items() for row in rows]
            mark = driver.watermark
            live = f"timestamptz '{mark.isoformat()}'" if mark is not None else "timestamptz '1900-01-01 00:00:00+00'"
            sql = f"""select id, rid, coalesce(a.k, b.k) from (select * from a where "at" + interval 20 second > {live}) a
                {how} join (select * from b where "at" + interval 40 second > {live}) b on a.k = b.k"""
            assert shown(driver, "out", "id", "rid", "k") == asked_of(sql, came), f"seed {seed}, after {len(came)}"
        driver.advance(at(3600))
        assert driver.rows("out") == []


def test_windows_of_counts_over_a_joined_table_are_refused_and_over_its_changes_they_count() -> None:
    app = Declaration("counted")
    s = streams(app)
    joined = s.a.to_table("id").join(s.b.to_table("rid"), on="k", ttl=None)
    over = Declaration("refused")
    refused = streams(over)
    table = refused.a.to_table("id").join(refused.b.to_table("rid"), on="k", ttl=None)
    over.view("out", table.window(count_window(3), by="k").agg(rows="count(*)"))
    with pytest.raises(PlanError) as found:
        over.plan()
    assert ".to_stream()" in (found.value.hint or "")
    app.view("out", joined.to_stream().window(count_window(3), by="k").agg(rows="count(*)"))
    with TestDriver(app, shards=3) as driver:
        driver.send("b", [{"rid": n, "k": "x", "m": n, "at": at(n)} for n in range(2)])
        for n in range(3):
            driver.send("a", [{"id": n, "k": "x", "n": n, "at": at(n)}])
        driver.send("a", [{"id": 0, "k": "y", "n": 0, "at": at(5)}])
        driver.end()
        # Six inserts and two deletes; the end of the input closes the window that is not full.
        assert sorted(row["rows"] for row in driver.rows("out")) == [2, 3, 3]


BORDERS = (
    "0002-01-02T00:00:00Z",
    "1582-10-15T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00Z",
    "9997-12-31T23:59:59.999999Z",
)


@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize("moment", BORDERS)
def test_times_at_the_borders_meet(moment: str, how: str) -> None:
    app = Declaration("borders")
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded("0s", idle="1 day")}
    left, right = app.stream("a", LEFT, **timed), app.stream("b", RIGHT, **timed)
    app.sink(left.join_within(right, on="k", within="1 hour", how=how), LogTopic("within"), name="within")
    app.sink(left.join(right.to_table("k").as_of("at", history="1 hour"), on="k", how="left"), LogTopic("versions"), name="versions")
    app.view("tables", left.to_table("id").join(right.to_table("rid"), on=["k", "at"], how=how, ttl=None))
    with TestDriver(app) as driver:
        driver.send_all({"a": [{"id": 1, "k": "x", "n": 1, "at": moment}], "b": [{"rid": 2, "k": "x", "m": 1, "at": moment}]})
        driver.end()
        assert [driver.late("a"), driver.late("b")] == [[], []]
        for name in ("within", "versions", "tables"):
            assert [(row["id"], row["rid"]) for row in driver.rows(name)] == [(1, 2)], name


@pytest.mark.parametrize("first", [1, 2])
def test_a_stream_meets_two_tables_one_after_the_other(first: int) -> None:
    """The tables have the rows of this epoch, whichever of them comes first."""
    app = Declaration("chain")
    a = app.stream("a", "id int, k string", key="id")
    b = app.stream("b", "k string, x string").to_table("k")
    c = app.stream("c", "x string, y int").to_table("x")
    app.sink(a.join(b, on="k", how="left").join(c, on="x", how="left"), LogTopic("out"), name="out")
    rows: dict[str, list[Row]] = {"b": [{"k": "k", "x": "x"}], "c": [{"x": "x", "y": 1}]}
    with TestDriver(app, shards=3) as driver:
        for name in ("bc", "cb")[first - 1]:
            driver.send(name, rows[name])
        driver.send("a", [{"id": 1, "k": "k"}, {"id": 2, "k": "other"}])
        driver.send_all({"c": [{"x": "x", "y": 2}], "a": [{"id": 3, "k": "k"}]})
        assert sorted((row["id"], row["y"]) for row in driver.rows("out") if row["y"]) == [(1, 1), (3, 2)]
        assert len(driver.rows("out")) == 3
