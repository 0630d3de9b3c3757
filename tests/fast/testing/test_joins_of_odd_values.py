"""Joins over keys that are no number, zeros of both signs or null, over equal times, and over conditions that are null: by brute force."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds, soaked
from tests.support.joining import Row, Sent, in_batches, run, way
from tests.support.streams import at

NAN, BOUND = float("nan"), 15
KEYS = (NAN, 0.0, -0.0, 1.5, None)
KAFKA = hr.kafka("topic", servers="127.0.0.1:1")
CONDITIONS: Mapping[str | None, Callable[[Row, Row], bool]] = {
    None: lambda left, right: True,
    "n < m": lambda left, right: None not in (left["n"], right["m"]) and left["n"] < right["m"],
    "not (n = m)": lambda left, right: None not in (left["n"], right["m"]) and left["n"] != right["m"],
    "n <=> m": lambda left, right: left["n"] == right["m"],
    "m in (1, null)": lambda left, right: right["m"] == 1,
    "at < at_right": lambda left, right: left["at"] < right["at"],
}


def same(value: Any) -> Any:
    """The same for values that are one key, and for contents that are equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, same(part)) for name, part in sorted(value.items()))
    return tuple(map(same, value)) if isinstance(value, list) else value


def meets(left: Row, right: Row, on: Mapping[str, str]) -> bool:
    return all(left[mine] is not None and same(left[mine]) == same(right[other]) for mine, other in on.items())


def records(chance: random.Random) -> list[Sent]:
    """Records of `a` and `b`, many of them with equal times."""
    made: list[Sent] = []
    second = 0
    for number in range(30):
        second += chance.choice([0, 0, 0, 1, 2, 9])
        row = {"k": chance.choice(KEYS), "at": at(second)}
        value = chance.choice([None, 0, 1, 2])
        made.append(("a", {"id": number, "n": value, **row}) if chance.random() < 0.5 else ("b", {"rid": number, "m": value, **row}))
    return made


@pytest.mark.parametrize("seed", seeds(soaked(600, 12)))
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_records_within_a_time_meet_by_brute_force(how: str, seed: int) -> None:
    chance = random.Random(f"{how} {seed}")
    pick = chance.choice(["all", "first", "last"]) if how in ("inner", "left") else "all"
    before, after = chance.choice([0, 0, 1, 5, 20]), chance.choice([0, 0, 1, 5, 20])
    where, sent = chance.choice(list(CONDITIONS)), records(chance)
    app = Declaration("odd")
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded(f"{BOUND}s", idle="1 day")}
    left = app.stream("a", "id int, k double, n int, at timestamp", **timed)
    right = app.stream("b", "rid int, k double, m int, at timestamp", **timed)
    joined = left.join_within(right, on="k", within=(f"{before}s", f"{after}s"), how=how, pick=pick, where=where)
    app.sink(joined, LogTopic("out"), name="out")
    lefts, rights = ([row for stream, row in sent if stream == name] for name in "ab")

    def near(one: Row, two: Row) -> bool:
        return one["at"] - timedelta(seconds=before) <= two["at"] <= one["at"] + timedelta(seconds=after)

    pairs = [
        (one, two) for one in lefts for two in rights if meets(one, two, {"k": "k"}) and near(one, two) and CONDITIONS[where](one, two)
    ]
    matched = {one["id"] for one, _ in pairs}, {two["rid"] for _, two in pairs}
    alone = [(one["id"], None) for one in lefts if how in ("left", "full") and one["id"] not in matched[0]]
    alone += [(None, two["rid"]) for two in rights if how in ("right", "full") and two["rid"] not in matched[1]]
    answers = []
    for _ in range(2):
        driver = run(app, way(chance, sent, BOUND))
        answers.append(Counter((row["id"], row["rid"]) for row in driver.rows("out")))
        assert [step["rows"] for step in driver.state()] == [0]
    assert answers[0] == answers[1]
    if pick == "all":
        assert answers[0] == Counter([*((one["id"], two["rid"]) for one, two in pairs), *alone])
        return
    end = min if pick == "first" else max
    ends = {number: end(two["at"] for one, two in pairs if one["id"] == number) for number in matched[0]}
    best = {(one["id"], two["rid"]) for one, two in pairs if two["at"] == ends[one["id"]]}
    assert Counter(number for number, _ in answers[0]) == Counter([*matched[0], *(number for number, _ in alone)])
    assert set(answers[0]) <= best | set(alone)


ON: tuple[dict[str, str], ...] = ({"k": "k"}, {"id": "rid"}, {"k": "rid"}, {"id": "k"}, {"id": "rid", "k": "k"}, {"k": "rid", "id": "k"})
LEFT, RIGHT = "id double, k double, n array<int>", "rid double, k double, m struct<x: int, y: array<double>>"


def changes(chance: random.Random) -> list[Sent]:
    """Rows that two tables get, get again and lose; no key of a table is null."""
    made: list[Sent] = []
    for _ in range(24):
        stream, key = chance.choice([("a", "id"), ("b", "rid")])
        former = [row for name, row in made if name == stream and not row.get("removed")]
        number = chance.choice([key for key in KEYS if key is not None])
        if chance.random() < 0.2:
            made.append((stream, {key: number, "removed": True}))
        elif former and chance.random() < 0.2:
            made.append((stream, chance.choice(former)))
        else:
            lists, structs = [None, [], [1], [None]], [None, {"x": None, "y": [NAN]}, {"x": 1, "y": None}]
            values = {"n": chance.choice(lists)} if stream == "a" else {"m": chance.choice(structs)}
            # A full join by all of its columns has dead letters for what is null.
            made.append((stream, {key: number, "k": chance.choice(KEYS[:4]), **values}))
    return made


def standing(sent: list[Sent], stream: str, key: str) -> list[Row]:
    rows: dict[Any, Row] = {}
    for name, row in sent:
        if name == stream:
            rows.pop(same(row[key]), None)
            if not row.get("removed"):
                rows[same(row[key])] = row
    return list(rows.values())


@pytest.mark.parametrize("seed", seeds(soaked(600, 12)))
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_rows_of_tables_meet_by_brute_force_and_their_changes_add_up(how: str, seed: int) -> None:
    chance = random.Random(f"{how} {seed}")
    on, sent = chance.choice(ON), changes(chance)
    app = Declaration("odd")
    left, right = app.table("a", LEFT, key="id", source=KAFKA), app.table("b", RIGHT, key="rid", source=KAFKA)
    joined = left.join(right, on=on, how=how, ttl=None)
    app.view("out", joined)
    app.sink(joined.to_stream(), LogTopic("changes"), name="changes")
    shown = {other: on_left for on_left, other in on.items()}

    def result(one: Row | None, two: Row | None) -> tuple[Any, ...]:
        found: Row = dict.fromkeys(joined.columns.names)
        for name, value in (two or {}).items():
            found[shown.get(name) or ("k_right" if name == "k" else name)] = value
        return tuple(same(value) for value in {**found, **(one or {})}.values())

    def expected(came: int) -> list[tuple[Any, ...]]:
        lefts, rights = standing(sent[:came], "a", "id"), standing(sent[:came], "b", "rid")
        pairs = [(one, two) for one in lefts for two in rights if meets(one, two, on)]
        rows = [result(*pair) for pair in pairs]
        if how in ("left", "full"):
            rows += [result(one, None) for one in lefts if all(one is not met for met, _ in pairs)]
        if how in ("right", "full"):
            rows += [result(None, two) for two in rights if all(two is not met for _, met in pairs)]
        return sorted(rows, key=str)

    def check(driver: TestDriver, came: int) -> None:
        assert sorted((tuple(same(row[name]) for name in joined.columns.names) for row in driver.rows("out")), key=str) == expected(came)

    # Of two partitions nobody knows which of 0.0 and -0.0 came first.
    driver = run(app, replace(in_batches(chance, sent), partitions=1), check)
    live: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in driver.rows("changes"):
        key = tuple(same(row[name]) for name in joined.node.keys)
        assert (row["op"] == "insert") == (key not in live)
        content = tuple(same(row[name]) for name in joined.columns.names)
        if row["op"] == "delete":
            assert live.pop(key) == content
        else:
            live[key] = content
    assert sorted(live.values(), key=str) == expected(len(sent))
