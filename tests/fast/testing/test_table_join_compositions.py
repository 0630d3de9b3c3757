"""Joins of tables before and behind other steps, whatever the batches, shards, crashes and deletes: after every change what DuckDB makes of
the rows that stand."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.plan.nodes import upstream
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds, soaked
from tests.support.joining import Row, Sent, asked, in_batches, run, shown

COLUMNS = {"a": "id int, k string, n int", "b": "rid int, k string, m int", "c": "k string, label string"}
KEYS = {"a": "id", "b": "rid", "c": "k"}


@dataclass(frozen=True)
class Tables:
    """Three tables: two with a foreign key that moves, and one by that key."""

    a: Any
    b: Any
    c: Any


@dataclass(frozen=True)
class Composition:
    """A table made of the three, and the same in SQL, with its columns in order."""

    made: Callable[[Tables], Any]
    sql: str


def changes(chance: random.Random, count: int = 36) -> list[Sent]:
    """Rows that the tables get and lose, in an order."""
    made: list[Sent] = []
    for number in range(count):
        stream = chance.choice("aabbc")
        key = chance.choice("xyz") if stream == "c" else chance.randrange(6)
        if chance.random() < 0.2:
            made.append((stream, {KEYS[stream]: key, "removed": True}))
            continue
        k = chance.choice(["x", "y", "z", None])
        values: dict[str, Row] = {
            "a": {"k": k, "n": number % 13 - 3},
            "b": {"k": k, "m": number % 11 - 2},
            "c": {"label": f"l{number % 3}"},
        }
        made.append((stream, {KEYS[stream]: key, **values[stream]}))
    return made


def standing(sent: list[Sent]) -> dict[str, tuple[list[Row], str]]:
    """The rows of each table after changes in this order."""
    rows: dict[str, dict[Any, Row]] = {name: {} for name in COLUMNS}
    for stream, row in sent:
        rows[stream].pop(row[KEYS[stream]], None)
        if not row.get("removed"):
            rows[stream][row[KEYS[stream]]] = row
    return {name: (list(held.values()), COLUMNS[name]) for name, held in rows.items()}


def grouped(table: Any, **aggregates: str) -> Any:
    return table.group("k", ttl=None).agg(**aggregates)


def joined(left: Any, right: Any, on: Any = "k", how: str = "inner", **options: Any) -> Any:
    return left.join(right, on=on, how=how, ttl=None, **options)


def with_itself(table: Any) -> Any:
    return joined(table, table)


def tagged(table: Any, name: str, columns: str) -> Any:
    return table.select(columns, f"'{name}' as origin")


def by_expression(left: str, right: str) -> Callable[[Tables], Any]:
    """Rows whose expressions are equal."""
    return lambda t: joined(t.a.with_columns(x=left), t.b.with_columns(y=right), {"x": "y"}, "full").select("id, rid")


def in_sql(left: str, right: str) -> str:
    return f"select id, rid from a full join b on ({left}) = ({right})"


TOP_B = "(select * from b where m is not null order by m desc, rid limit 2)"
GROUPED_A = "(select k, count(*) as rows, sum(n)::bigint as total from a group by k)"
COMPOSITIONS: Mapping[str, Composition] = {
    "group, table": Composition(
        lambda t: joined(grouped(t.a, rows="count(*)", total="sum(n)"), t.b, how="left").select("k, rows, total, rid, m"),
        f"select g.k, rows, total, rid, m from {GROUPED_A} g left join b on g.k = b.k",
    ),
    "join of a join of a group and a table, and a top": Composition(
        lambda t: joined(joined(grouped(t.a, rows="count(*)"), t.c), t.b.top(2, by="m"), how="left").select("k, rows, label, rid, m"),
        f"select g.k, rows, label, rid, m from {GROUPED_A} g join c on g.k = c.k left join {TOP_B} b on g.k = b.k",
    ),
    "union of joins": Composition(
        lambda t: tagged(joined(t.a, t.c), "one", "id, k, label").union(tagged(joined(t.a, t.c, how="left"), "two", "id, k, label")),
        "select id, a.k, label, 'one' from a join c on a.k = c.k union all select id, a.k, label, 'two' from a left join c on a.k = c.k",
    ),
    "union of joins, grouped": Composition(
        lambda t: grouped(
            joined(t.a, t.b).select("k, n as v").union(joined(t.b, t.c).select("k, m as v")), rows="count(*)", total="sum(v)"
        ),
        """select k, count(*), sum(v)::bigint from (select a.k, n as v from a join b on a.k = b.k
           union all select b.k, m from b join c on b.k = c.k) group by k""",
    ),
    "union of tables, joined": Composition(
        lambda t: joined(tagged(t.a, "a", "id, k").union(tagged(t.b, "b", "rid as id, k")), t.c, how="full").select("origin, id, k, label"),
        """select origin, id, coalesce(u.k, c.k), label
           from (select id, k, 'a' as origin from a union all select rid, k, 'b' from b) u full join c on u.k = c.k""",
    ),
    "union of tables, joined with itself": Composition(
        lambda t: with_itself(tagged(t.a, "a", "id, k").union(tagged(t.b, "b", "rid as id, k"))).select(
            "origin, id, origin_right, id_right"
        ),
        """with u as (select id, k, 'a' as origin from a union all select rid, k, 'b' from b)
           select x.origin, x.id, y.origin, y.id from u x join u y on x.k = y.k""",
    ),
    "a table with itself": Composition(
        lambda t: joined(t.a, t.a).select("id, id_right, k, n, n_right"),
        "select x.id, y.id, x.k, x.n, y.n from a x join a y on x.k = y.k",
    ),
    "a table with itself by its key": Composition(
        lambda t: joined(t.a, t.a, "id", "full").select("id, k, k_right, n_right"),
        "select id, x.k, y.k, y.n from a x full join a y using (id)",
    ),
    "a hierarchy": Composition(
        lambda t: joined(t.a, t.a.select("id as boss, n as grade"), {"n": "boss"}, "left").select("id, n, grade"),
        "select x.id, x.n, y.n from a x left join a y on x.n = y.id",
    ),
    "a hierarchy of three": Composition(
        lambda t: joined(
            joined(t.a, t.a.select("id as boss, n as grade"), {"n": "boss"}),
            t.a.select("id as chief, k as rank"),
            {"grade": "chief"},
            "left",
        ).select("id, grade, rank"),
        "select x.id, y.n, z.k from a x join a y on x.n = y.id left join a z on y.n = z.id",
    ),
    "join, group, join": Composition(
        lambda t: joined(grouped(joined(t.a, t.b), pairs="count(*)", total="sum(n + m)"), t.c, how="full").select("k, pairs, total, label"),
        """select coalesce(g.k, c.k), pairs, total, label
           from (select a.k as k, count(*) as pairs, sum(n + m)::bigint as total from a join b on a.k = b.k group by a.k) g
           full join c on g.k = c.k""",
    ),
    "join, group, join, group": Composition(
        lambda t: joined(grouped(joined(t.a, t.b, how="left"), pairs="count(rid)"), t.c).group("label", ttl=None).agg(total="sum(pairs)"),
        """select label, sum(pairs)::bigint from (select a.k, count(rid) as pairs from a left join b on a.k = b.k group by a.k) g
           join c on g.k = c.k group by label""",
    ),
    "extremes of a join, joined": Composition(
        lambda t: joined(grouped(joined(t.a, t.b), high="max(n)", low="min(m)", different="count(distinct rid)"), t.c).select(
            "k, high, low, different, label"
        ),
        """select g.k, high, low, different, label from (select a.k as k, max(n) as high, min(m) as low, count(distinct rid) as different
           from a join b on a.k = b.k group by a.k) g join c on g.k = c.k""",
    ),
    "join, top, join": Composition(
        lambda t: joined(joined(t.a, t.c).top(2, by="n"), t.b, how="left").select("id, label, rid"),
        """select id, label, rid
           from (select id, a.k, n, label from a join c on a.k = c.k where n is not null order by n desc, id limit 2) j
           left join b on j.k = b.k""",
    ),
    "places, joined": Composition(
        lambda t: joined(t.a.top(3, by="n", rank="place"), t.b.top(3, by="m", rank="place"), "place", "full").select("place, id, rid"),
        """select coalesce(x.place, y.place), id, rid
           from (select id, row_number() over (order by n desc, id) as place from a where n is not null order by n desc, id limit 3) x
           full join
           (select rid, row_number() over (order by m desc, rid) as place from b where m is not null order by m desc, rid limit 3) y
           on x.place = y.place""",
    ),
    "top of each key, joined, grouped": Composition(
        lambda t: joined(t.a.top(1, by="n", per="k"), t.b).group("id", ttl=None).agg(rows="count(*)", total="sum(m)"),
        """select id, count(*), sum(m)::bigint from (select * from a where n is not null
           qualify row_number() over (partition by k order by n desc, id) = 1) x join b on x.k = b.k group by id""",
    ),
    "join, filter, join": Composition(
        lambda t: joined(joined(t.a, t.b).where("n < m"), t.c, how="left").select("id, rid, label"),
        "select id, rid, label from a join b on a.k = b.k left join c on a.k = c.k where n < m",
    ),
    "filter of what is not there": Composition(
        lambda t: joined(t.a, t.b, how="left").where("rid is null").select("id, rid, k"),
        "select id, null, k from a where not exists (select 1 from b where b.k = a.k)",
    ),
    "filter of what is not there, joined": Composition(
        lambda t: joined(joined(t.a, t.b, how="full").where("id is null or rid is null"), t.c, how="left").select("id, rid, label"),
        """select id, rid, label from (select id, rid, coalesce(a.k, b.k) as k from a full join b on a.k = b.k
           where id is null or rid is null) j left join c on j.k = c.k""",
    ),
    "two full joins": Composition(
        lambda t: joined(joined(t.a, t.b, how="full"), t.c, how="full").select("id, rid, k, label"),
        """select id, rid, coalesce(j.k, c.k), label from (select id, rid, coalesce(a.k, b.k) as k from a full join b on a.k = b.k) j
           full join c on j.k = c.k""",
    ),
    "a left join, then a full one by its left key": Composition(
        lambda t: joined(joined(t.a, t.b, how="left"), t.b.select("rid as id, m as more"), "id", "full").select("id, rid, k, m, more"),
        """select coalesce(j.id, c.rid), j.rid, k, j.m, c.m from (select id, rid, a.k, m from a left join b on a.k = b.k) j
           full join (select rid, m from b) c on j.id = c.rid""",
    ),
    "a full join, then full ones by each of its keys": Composition(
        lambda t: joined(
            joined(joined(t.a, t.b, how="full"), t.b.select("rid as id, m as more"), "id", "full"),
            t.a.select("id as rid, n as other"),
            "rid",
            "full",
        ).select("id, rid, k, n, more, other"),
        """select j.id, coalesce(j.rid, d.id), k, j.n, more, d.n from (select coalesce(i.id, c.rid) as id, i.rid, k, n, c.m as more
           from (select id, rid, coalesce(a.k, b.k) as k, n from a full join b on a.k = b.k) i
           full join (select rid, m from b) c on i.id = c.rid) j full join (select id, n from a) d on j.rid = d.id""",
    ),
    "a right join of a right join": Composition(
        lambda t: joined(joined(t.c, t.a, how="right"), t.b, how="right").select("id, rid, k, label"),
        """select id, rid, b.k, label from (select id, a.k, label from c right join a on c.k = a.k) j right join b on j.k = b.k""",
    ),
    "four tables": Composition(
        lambda t: joined(
            joined(joined(t.a, t.c), t.b, how="left"), t.c.select("k as other, label as again"), {"label": "other"}, "left"
        ).select("id, rid, label, again"),
        "select id, rid, c.label, null from a join c on a.k = c.k left join b on a.k = b.k",
    ),
    "a join with itself": Composition(
        lambda t: with_itself(joined(t.a, t.c.select("k, length(label) as m"))).select("id, id_right, m, m_right"),
        """with j as (select id, a.k as k, length(label) as m from a join c on a.k = c.k)
           select x.id, y.id, x.m, y.m from j x join j y on x.k = y.k""",
    ),
    "changes as facts and back, joined": Composition(
        lambda t: joined(joined(t.a, t.c).to_stream().to_table("id"), t.b, how="left").select("id, label, rid"),
        "select id, label, rid from a join c on a.k = c.k left join b on a.k = b.k",
    ),
    "a table by another key, joined": Composition(
        lambda t: joined(t.a.where("k is not null").to_table("k"), t.c, how="full").select("id, k, label"),
        """select id, coalesce(x.k, c.k), label from (select * from a where k is not null
           qualify row_number() over (partition by k order by id desc) = 1) x full join c on x.k = c.k""",
    ),
    "a table under other names": Composition(
        lambda t: joined(t.a.select("id as number, k as code, n"), t.b, {"code": "k", "n": "m"}, "left").select("number, code, rid"),
        "select id, a.k, rid from a left join b on a.k = b.k and n = m",
    ),
    "two columns, full": Composition(
        lambda t: joined(t.a, t.b, {"k": "k", "n": "m"}, "full").select("id, rid, k, n"),
        "select id, rid, coalesce(a.k, b.k), coalesce(n, m) from a full join b on a.k = b.k and n = m",
    ),
    "an empty side": Composition(
        lambda t: joined(t.a, t.b.where("rid < 0"), how="full").select("id, rid, k"),
        "select id, null, k from a",
    ),
    "two empty sides": Composition(
        lambda t: joined(t.a.where("id < 0"), t.b.where("rid < 0"), how="full").select("id, rid, k"),
        "select id, id, k from a where false",
    ),
    "a group of nothing, joined": Composition(
        lambda t: joined(grouped(t.a.where("n > 100"), rows="count(*)"), t.c, how="right").select("k, rows, label"),
        "select k, null, label from c",
    ),
    "keys that are all null": Composition(
        lambda t: joined(t.a.with_columns(x="cast(null as string)"), t.b.with_columns(y="cast(null as string)"), {"x": "y"}, "full").select(
            "id, rid"
        ),
        "select id, null from a union all select null, rid from b",
    ),
    "groups of a full join by a key that may be null": Composition(
        lambda t: grouped(joined(t.a, t.b, how="full"), rows="count(*)", left="count(id)", right="count(rid)"),
        "select coalesce(a.k, b.k), count(*), count(id), count(rid) from a full join b on a.k = b.k group by all",
    ),
    "the best of a full join": Composition(
        lambda t: joined(t.a, t.b, how="full").top(3, by="m").select("id, rid, m"),
        "select id, rid, m from a full join b on a.k = b.k where m is not null order by m desc, id nulls first, rid limit 3",
    ),
    "equal numbers of other types": Composition(by_expression("cast(n as bigint)", "cast(m as bigint)"), in_sql("n::bigint", "m::bigint")),
    "equal sums": Composition(by_expression("n % 3 + 1", "m % 3 + 1"), in_sql("n % 3 + 1", "m % 3 + 1")),
    "equal texts": Composition(
        by_expression("concat(upper(k), '-', n)", "concat(upper(k), '-', m)"), in_sql("upper(a.k) || '-' || n", "upper(b.k) || '-' || m")
    ),
    "equal truth": Composition(by_expression("n > 3", "m > 3"), in_sql("n > 3", "m > 3")),
    "equal fractions": Composition(by_expression("n / 2.0d", "m / 2.0d"), in_sql("n / 2.0::double", "m / 2.0::double")),
    "zeros of both signs": Composition(by_expression("n * 0.0d", "m * -0.0d"), in_sql("n * 0", "m * 0")),
    "decimals of one scale": Composition(
        by_expression("cast(n as decimal(10, 2))", "cast(m as decimal(10, 2))"), in_sql("n::decimal(10, 2)", "m::decimal(10, 2)")
    ),
    "decimals of two scales, cast": Composition(
        by_expression("cast(cast(n as decimal(12, 4)) / 4 as decimal(20, 2))", "cast(m as decimal(20, 2))"),
        in_sql("(n / 4.0)::decimal(20, 2)", "m::decimal(20, 2)"),
    ),
    "equal days": Composition(
        by_expression("date_add(date'2026-01-01', n % 3)", "date_add(date'2026-01-01', m % 3)"), in_sql("n % 3", "m % 3")
    ),
    "equal moments": Composition(by_expression("timestamp_seconds(n % 3)", "timestamp_seconds(m % 3)"), in_sql("n % 3", "m % 3")),
    "equal bytes": Composition(by_expression("cast(k as binary)", "cast(k as binary)"), in_sql("a.k", "b.k")),
    "very long keys": Composition(by_expression("repeat(k, 20000)", "repeat(k, 20000)"), in_sql("a.k", "b.k")),
    "keys of every length": Composition(
        by_expression("repeat(k, n * 100)", "repeat(k, m * 100)"), in_sql("repeat(a.k, n * 100)", "repeat(b.k, m * 100)")
    ),
    "keys outside of English": Composition(by_expression("concat('ß\U0001f600', k)", "concat('ß\U0001f600', k)"), in_sql("a.k", "b.k")),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_composition_has_the_rows_of_sql_after_every_change(name: str) -> None:
    composition = COMPOSITIONS[name]
    for seed in seeds(soaked(8, 2)):
        chance = random.Random(f"{name} {seed}")
        app = Declaration("composition")
        kafka = hr.kafka("topic", servers="127.0.0.1:1")
        made = composition.made(Tables(*(app.table(table, kinds, key=KEYS[table], source=kafka) for table, kinds in COLUMNS.items())))
        app.view("out", made)
        read = {source.name for source in upstream(made.node)}
        sent = [one for one in changes(chance) if one[0] in read]

        def check(
            driver: TestDriver, came: int, seed: int = seed, sent: list[Sent] = sent, columns: list[str] = made.columns.names
        ) -> None:
            if came % 3 and came < len(sent):
                return
            assert shown(driver, "out", *columns) == asked(composition.sql, **standing(sent[:came])), f"seed {seed}, after {came}"

        run(app, in_batches(chance, sent), check)
