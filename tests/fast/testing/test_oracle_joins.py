"""Every join, whatever the order, the batches, the partitions, the shards and the crashes: what DuckDB's SQL makes of the whole input."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds, soaked
from tests.support.joining import LEFT, RIGHT, Row, Sent, asked, in_batches, records, run, shown, way

HOWS = ("inner", "left", "right", "full")
THIRD = "cid int, k string, at timestamp"
BOUND = 15


def cases(part: int) -> range:
    """The seeds of each kind of join: 1,000 in `make soak`."""
    return seeds(soaked(1_000, part))


def streams(app: Declaration, **of_right: str) -> tuple[Any, Any]:
    left = app.stream("a", LEFT, key="k", time="at", watermark=bounded(f"{BOUND}s"))
    return left, app.stream("b", RIGHT, key="k", time="at", watermark=bounded(f"{BOUND}s"), **of_right)


def kept(sent: list[Sent], stream: str, driver: TestDriver) -> list[Row]:
    """The records of a stream that were not late."""
    late = {row.get("id", row.get("rid")) for row in driver.late(stream)}
    return [row for name, row in sent if name == stream and row.get("id", row.get("rid")) not in late]


def balanced(driver: TestDriver, step: str, came: int) -> None:
    """All records that came to a step are accounted for."""
    (counts,) = [counts for counts in driver.accounting() if counts["step"] == step]
    assert counts["in"] == came
    assert counts["in"] == counts["out"] + counts["late"] + counts["filtered"]


@pytest.mark.parametrize("seed", cases(48))
@pytest.mark.parametrize("how", HOWS)
def test_streams_are_joined_within_a_time_as_sql_does(seed: int, how: str) -> None:
    chance = random.Random(seed)
    late = chance.choice([0, 0.15])
    before, after = chance.choice([0, 2, 10]), chance.choice([0, 3, 25])
    where = chance.choice([None, "n < m or n is null"])
    sent = records(chance)
    app = Declaration("joins")
    left, right = streams(app)
    joined = left.join_within(right, on="k", within=(f"{before}s", f"{after}s"), how=how, where=where)
    app.sink(joined, LogTopic("out"), name="out")
    drivers = [run(app, way(chance, sent, BOUND, late=late)) for _ in range(1 if late else 2)]
    for driver in drivers:
        tables = {"a": (kept(sent, "a", driver), LEFT), "b": (kept(sent, "b", driver), RIGHT)}
        query = f"""select id, rid, coalesce(a.k, b.k), n, m, a.at, b.at from a {how} join b on a.k = b.k
            and b.at between a.at - interval {before} second and a.at + interval {after} second and ({where or "true"})"""
        got = shown(driver, "out", "id", "rid", "k", "n", "m", "at", "at_right")
        assert got == asked(query, **tables), f"seed {seed}"
        assert [step["rows"] for step in driver.state()] == [0]
        balanced(driver, "a.join", len(sent))


@pytest.mark.parametrize("seed", cases(24))
@pytest.mark.parametrize("pick", ["first", "last"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_one_match_is_picked_by_the_right_time(seed: int, how: str, pick: str) -> None:
    chance = random.Random(seed)
    sent = records(chance, keys=("a", "b"))
    app = Declaration("picks")
    left, right = streams(app)
    app.sink(left.join_within(right, on="k", within="12s", how=how, pick=pick), LogTopic("out"), name="out")
    driver = run(app, way(chance, sent, BOUND, late=0.1))
    tables = {"a": (kept(sent, "a", driver), LEFT), "b": (kept(sent, "b", driver), RIGHT)}
    query = f"""select id, rid from a {how} join b on a.k = b.k and b.at between a.at - interval 12 second and a.at + interval 12 second
        qualify row_number() over (partition by id order by b.at {"desc" if pick == "last" else "asc"}) = 1"""
    assert shown(driver, "out", "id", "rid") == asked(query, **tables), f"seed {seed}"


@pytest.mark.parametrize("seed", cases(24))
def test_a_stream_is_joined_with_itself(seed: int) -> None:
    chance = random.Random(seed)
    sent = [one for one in records(chance) if one[0] == "a"]
    app = Declaration("itself")
    left = app.stream("a", LEFT, key="k", time="at", watermark=bounded(f"{BOUND}s"))
    app.sink(left.join_within(left, on="k", within=("0s", "9s"), where="id <> id_right"), LogTopic("out"), name="out")
    driver = run(app, way(chance, sent, BOUND))
    query = "select x.id, y.id from a x join a y on x.k = y.k and y.at between x.at and x.at + interval 9 second and x.id <> y.id"
    assert shown(driver, "out", "id", "id_right") == asked(query, a=([row for _, row in sent], LEFT)), f"seed {seed}"


@pytest.mark.parametrize("seed", cases(32))
def test_three_streams_are_joined_one_after_the_other(seed: int) -> None:
    chance = random.Random(seed)
    first, second = chance.choice(HOWS), chance.choice(HOWS)
    more = [("c", {"cid": row["rid"], "k": row["k"], "at": row["at"]}) for stream, row in records(chance) if stream == "b"]
    sent = [*records(chance), *more]
    app = Declaration("three")
    left, right = streams(app)
    third = app.stream("c", THIRD, key="k", time="at", watermark=bounded(f"{BOUND}s"))
    two = left.join_within(right, on="k", within=("4s", "9s"), how=first)
    three = two.join_within(third, on="k", within=("3s", "8s"), how=second, suffix="_c")
    app.sink(three, LogTopic("out"), name="out")
    driver = run(app, way(chance, sent, BOUND))
    assert [driver.late(stream) for stream in "abc"] == [[], [], []]
    names = {"a": LEFT, "b": RIGHT, "c": THIRD}
    query = f"""with two as (select id, rid, coalesce(a.k, b.k) as k, greatest(a.at, b.at) as at from a {first} join b
            on a.k = b.k and b.at between a.at - interval 4 second and a.at + interval 9 second)
        select id, rid, cid, coalesce(two.k, c.k) from two {second} join c
            on two.k = c.k and c.at between two.at - interval 3 second and two.at + interval 8 second"""
    found = asked(query, **{name: ([row for stream, row in sent if stream == name], kind) for name, kind in names.items()})
    assert shown(driver, "out", "id", "rid", "cid", "k") == found
    assert {step["rows"] for step in driver.state()} == {0}


@pytest.mark.parametrize("seed", cases(32))
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_table_as_of_a_time_is_what_an_asof_join_finds(seed: int, how: str) -> None:
    chance = random.Random(seed)
    sent = records(chance)
    late = chance.choice([0, 0.15])
    app = Declaration("versions")
    left, right = streams(app)
    table = right.to_table("k").as_of("at", history=chance.choice(["0s", "30s", "1 hour"]))
    app.sink(left.join(table, on="k", how=how), LogTopic("out"), name="out")
    for _ in range(1 if late else 2):
        driver = run(app, way(chance, sent, BOUND, late=late))
        tables = {"a": (kept(sent, "a", driver), LEFT), "b": (kept(sent, "b", driver), RIGHT)}
        query = f"select id, rid, a.k, n, m from a asof {how} join b on a.k = b.k and a.at >= b.at"
        assert shown(driver, "out", "id", "rid", "k", "n", "m") == asked(query, **tables), f"seed {seed}"
        balanced(driver, "a.join", len(sent))


@pytest.mark.parametrize("seed", cases(16))
@pytest.mark.parametrize("how", ["inner", "left"])
def test_early_answers_as_of_a_time_become_those_of_an_asof_join(seed: int, how: str) -> None:
    chance = random.Random(seed)
    sent = records(chance)
    late = chance.choice([0, 0.15])
    app = Declaration("early")
    left, right = streams(app)
    table = right.to_table("k").as_of("at", history=chance.choice(["0s", "30s", "1 hour"]))
    early = left.join(table, on="k", how=how).emit(early=True, key="id")
    app.view("out", early)
    app.view("sums", early.group("k", ttl=None).agg(rows="count(*)", total="sum(m)"))
    counted = early.window(tumbling("20 seconds"), by="k").agg(rows="count(*)", total="sum(m)")
    app.view("windows", counted.select("k, window_start, rows, total"))
    driver = run(app, way(chance, sent, BOUND, late=late))
    tables = {"a": (kept(sent, "a", driver), LEFT), "b": (kept(sent, "b", driver), RIGHT)}
    query = f"select id, rid, a.k as k, n, m, a.at as moment from a asof {how} join b on a.k = b.k and a.at >= b.at"
    assert shown(driver, "out", "id", "rid", "k", "n", "m", "at") == asked(query, **tables), f"seed {seed}"
    sums = f"select k, count(*), sum(m)::bigint from ({query}) group by k"
    assert shown(driver, "sums", "k", "rows", "total") == asked(sums, **tables), f"seed {seed}"
    windows = f"select k, time_bucket(interval 20 second, moment) as w, count(*), sum(m)::bigint from ({query}) group by all"
    if not late:
        assert shown(driver, "windows", "k", "window_start", "rows", "total") == asked(windows, **tables), f"seed {seed}"
    balanced(driver, "a.join", len(sent))


def changes(chance: random.Random, count: int = 30) -> list[Sent]:
    """Rows that two tables get and lose, in an order; the left one has a foreign key that moves."""
    made: list[Sent] = []
    for number in range(count):
        removed = chance.random() < 0.2
        if chance.random() < 0.5:
            row = {"id": chance.randrange(6), "k": chance.choice(["a", "b", "c", None]), "n": number}
            made.append(("a", {"id": row["id"], "removed": True} if removed else row))
        else:
            row = {"rid": chance.randrange(6), "k": chance.choice(["a", "b", "c", None]), "m": number}
            made.append(("b", {"rid": row["rid"], "removed": True} if removed else row))
    return made


def standing(sent: list[Sent], stream: str, key: str) -> list[Row]:
    """The rows of a table after changes in this order."""
    rows: dict[Any, Row] = {}
    for row in [row for name, row in sent if name == stream]:
        rows.pop(row[key], None)
        if not row.get("removed"):
            rows[row[key]] = row
    return list(rows.values())


LEFT_TABLE, RIGHT_TABLE = "id int, k string, n int", "rid int, k string, m int"


def tables(app: Declaration, key: str) -> tuple[Any, Any]:
    source = hr.kafka("topic", servers="127.0.0.1:1")
    return app.table("a", LEFT_TABLE, key="id", source=source), app.table("b", RIGHT_TABLE, key=key, source=source)


@pytest.mark.parametrize("seed", cases(24))
@pytest.mark.parametrize("how", HOWS)
def test_two_tables_are_joined_after_every_change_as_sql_does(seed: int, how: str) -> None:
    chance = random.Random(seed)
    sent = changes(chance)
    app = Declaration("tables")
    left, right = tables(app, "rid")
    joined = left.join(right, on="k", how=how, ttl=None)
    app.view("out", joined)
    app.view("sums", joined.group("k", ttl=None).agg(pairs="count(*)", total="sum(n)", others="sum(m)"))

    def check(driver: TestDriver, came: int) -> None:
        if came < len(sent) and chance.random() < 0.6:
            return
        both = {"a": (standing(sent[:came], "a", "id"), LEFT_TABLE), "b": (standing(sent[:came], "b", "rid"), RIGHT_TABLE)}
        pairs = f"select id, rid, coalesce(a.k, b.k) as k, n, m from a {how} join b on a.k = b.k"
        assert shown(driver, "out", "id", "rid", "k", "n", "m") == asked(pairs, **both), f"seed {seed}, after {came}"
        sums = f"select k, count(*), sum(n)::bigint, sum(m)::bigint from ({pairs}) group by k"
        assert shown(driver, "sums", "k", "pairs", "total", "others") == asked(sums, **both), f"seed {seed}, after {came}"

    run(app, in_batches(chance, sent), check)


@pytest.mark.parametrize("seed", cases(24))
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_stream_meets_the_rows_that_a_table_has_at_that_moment(seed: int, how: str) -> None:
    chance = random.Random(seed)
    sent = list[Sent]()
    for number in range(40):
        row: Row = {"k": chance.choice(["a", "b", "c", None]), "n": number}
        if chance.random() < 0.5:
            sent.append(("a", {"id": number, **row}))
        else:
            sent.append(("b", {"k": row["k"], "removed": True} if chance.random() < 0.3 else {"k": row["k"], "m": number}))
    app = Declaration("lookup")
    left = app.stream("a", "id int, k string, n int", key="id")
    right = app.table("b", "k string, m int", key="k", source=hr.kafka("topic", servers="127.0.0.1:1"))
    app.sink(left.join(right, on="k", how=how, broadcast=chance.random() < 0.5), LogTopic("out"), name="out")
    driver = run(app, in_batches(chance, sent, together=False))
    numbered: dict[str, list[Row]] = {"a": [], "b": []}
    for number, (stream, row) in enumerate(sent):
        numbered[stream].append({"removed": False, **row, "seq": number})
    versions = "k string, m int, removed boolean, seq int"
    found = asked(
        f"""select id, a.k, n, case when not removed then m end as m from a asof left join b on a.k = b.k and a.seq >= b.seq
        where {"b.seq is not null and not removed" if how == "inner" else "true"}""",
        a=(numbered["a"], "id int, k string, n int, seq int"), b=(numbered["b"], versions),
    )  # fmt: skip
    assert shown(driver, "out", "id", "k", "n", "m") == found, f"seed {seed}"
    (counts,) = [counts for counts in driver.accounting() if counts["step"] == "a.join"]
    assert counts["filtered"] == len(numbered["a"]) - len(found)


@pytest.mark.parametrize("seed", cases(32))
def test_a_foreign_key_may_move_and_joins_may_follow_each_other(seed: int) -> None:
    chance = random.Random(seed)
    first, second = chance.choice(HOWS[:2]), chance.choice(HOWS)
    sent = list[Sent]()
    for number in range(30):
        stream = chance.choice("aabc")
        row: Row = {"a": {"id": chance.randrange(5)}, "b": {"k": chance.choice("xyz")}, "c": {"m": chance.randrange(3)}}[stream]
        values = {
            "a": {"k": chance.choice(["x", "y", "z", None]), "n": number},
            "b": {"m": chance.randrange(3)},
            "c": {"label": str(number)},
        }
        sent.append((stream, {**row, "removed": True} if chance.random() < 0.2 else {**row, **values[stream]}))
    app = Declaration("chain")
    source = hr.kafka("topic", servers="127.0.0.1:1")
    orders = app.table("a", "id int, k string, n int", key="id", source=source)
    prices = app.table("b", "k string, m int", key="k", source=source)
    labels = app.table("c", "m int, label string", key="m", source=source)
    joined = orders.join(prices, on="k", how=first, ttl=None)
    assert joined.node.keys == ("id",)
    app.view("joined", joined)
    labeled = joined.join(labels, on="m", how=second, ttl=None)
    app.view("labeled", labeled)
    app.view("best", labeled.top(2, by="n"))

    def check(driver: TestDriver, came: int) -> None:
        if came < len(sent) and chance.random() < 0.6:
            return
        held = {
            "a": (standing(sent[:came], "a", "id"), "id int, k string, n int"),
            "b": (standing(sent[:came], "b", "k"), "k string, m int"),
            "c": (standing(sent[:came], "c", "m"), "m int, label string"),
        }
        one = f"select id, k, n, m from a {first} join b using (k)"
        assert shown(driver, "joined", "id", "k", "n", "m") == asked(one, **held), f"seed {seed}, after {came}"
        two = f"select id, k, n, coalesce(j.m, c.m) as m, label from ({one}) j {second} join c on j.m = c.m"
        assert shown(driver, "labeled", "id", "k", "n", "m", "label") == asked(two, **held), f"seed {seed}, after {came}"
        best = asked(f"select n from ({two}) where n is not null order by n desc limit 2", **held)
        assert shown(driver, "best", "n") == best, f"seed {seed}, after {came}"

    run(app, in_batches(chance, sent), check)
