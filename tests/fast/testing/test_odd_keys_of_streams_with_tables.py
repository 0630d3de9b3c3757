"""Streams with tables and their versions, over keys that are NaN, zeros of both signs or null, and over equal times: by brute force."""

from __future__ import annotations

import random
from collections import Counter
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
from tests.support.joining import Row, Sent, Way, in_batches, run, way
from tests.support.streams import at

BOUND = 15
KEYS = (float("nan"), 0.0, -0.0, 1.5, None)
SHIFTS = (0, 0, 0, 3, 20)


def same(key: float | None) -> Any:
    """The same for values that are one key."""
    return key if key is None else "NaN" if key != key else key + 0.0  # noqa: PLR0124


def records(chance: random.Random) -> list[Sent]:
    """Records of `a` and versions of `b`, many of them with equal times; some ask for an earlier moment, or for none."""
    made: list[Sent] = []
    second = 0
    for number in range(36):
        second += chance.choice([0, 0, 0, 1, 2, 9])
        row = {"k": chance.choice(KEYS), "at": at(second)}
        if chance.random() < 0.5:
            asked = None if chance.random() < 0.1 else at(second - chance.choice(SHIFTS))
            made.append(("a", {"id": number, "asked": asked, **row}))
        else:
            made.append(("b", {"rid": number, "m": chance.choice([None, [], [None], [1, number]]), **row}))
    return made


def in_order(taken: Way, stream: str) -> list[Row]:
    """The records of a stream as they came."""
    return [row for epoch in taken.epochs for row in epoch.get(stream, [])]


def valid(record: Row, versions: list[Row], ttl: int | None) -> Row | None:
    """The version of a record's key at the moment it asks for; of those of one time the last that came."""
    if record["asked"] is None or record["k"] is None:
        return None
    known = [row for row in versions if same(row["k"]) == same(record["k"]) and row["at"] <= record["asked"]]
    found = max(known, key=lambda row: (row["at"], versions.index(row)), default=None)
    over = found is not None and ttl is not None and found["at"] + timedelta(seconds=ttl) <= record["asked"]
    return None if over else found


@pytest.mark.parametrize("seed", seeds(soaked(600, 12)))
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("early", [False, True])
def test_the_versions_of_odd_keys_are_found_by_brute_force(early: bool, how: str, seed: int) -> None:
    chance = random.Random(f"{how} {seed}")
    ttl, sent = chance.choice([None, None, 2, 10]), records(chance)
    app = Declaration("versions")
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded(f"{BOUND}s", idle="1 day")}
    left = app.stream("a", "id int, k double, asked timestamp, at timestamp", **timed)
    right = app.stream("b", "rid int, k double, m array<int>, at timestamp", **timed)
    table = right.to_table("k", ttl=None if ttl is None else f"{ttl}s").as_of("asked", history=f"{max(SHIFTS)}s")
    joined = left.join(table, on="k", how=how)
    if early:
        app.view("out", joined.emit(early=True, key="id"))
    else:
        app.sink(joined, LogTopic("out"), name="out")
    for _ in range(2):
        # Of two partitions nobody knows which record came first.
        taken = replace(way(chance, sent, BOUND), partitions=1)
        found = [(record["id"], valid(record, in_order(taken, "b"), ttl)) for record in in_order(taken, "a")]
        expected = [(number, row["rid"] if row else None, row["m"] if row else None) for number, row in found if row or how == "left"]
        driver = run(app, taken)
        assert [driver.late("a"), driver.late("b")] == [[], []]
        assert sorted(((row["id"], row["rid"], row["m"]) for row in driver.rows("out")), key=str) == sorted(expected, key=str)
        (counts,) = [counts for counts in driver.accounting() if counts["step"] == "a.join"]
        assert counts["filtered"] == len(found) - len(expected)


@pytest.mark.parametrize("seed", seeds(soaked(600, 12)))
@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_the_rows_of_odd_keys_are_found_by_brute_force(how: str, broadcast: bool, seed: int) -> None:
    chance = random.Random(f"{how} {seed}")
    sent: list[Sent] = []
    for number in range(40):
        key = chance.choice(KEYS)
        if chance.random() < 0.5:
            sent.append(("a", {"id": number, "k": key}))
        elif key is not None:
            removed = chance.random() < 0.3
            sent.append(("b", {"k": key, "removed": True} if removed else {"k": key, "rid": number}))
    app = Declaration("rows")
    left = app.stream("a", "id int, k double", key="id")
    right = app.table("b", "k double, rid int", key="k", source=hr.kafka("topic", servers="127.0.0.1:1"))
    app.sink(left.join(right, on="k", how=how, broadcast=broadcast), LogTopic("out"), name="out")
    taken = replace(in_batches(chance, sent), partitions=1)
    rows: dict[Any, int] = {}
    expected = Counter[tuple[int, int | None]]()
    for epoch in taken.epochs:
        for row in epoch.get("b", []):
            rows.pop(same(row["k"]), None)
            if not row.get("removed"):
                rows[same(row["k"])] = row["rid"]
        met = [(row["id"], rows.get(same(row["k"]))) for row in epoch.get("a", [])]
        expected += Counter(pair for pair in met if pair[1] is not None or how == "left")
    driver: TestDriver = run(app, taken)
    assert Counter((row["id"], row["rid"]) for row in driver.rows("out")) == expected
    (counts,) = [counts for counts in driver.accounting() if counts["step"] == "a.join"]
    assert counts["filtered"] == sum(stream == "a" for stream, _ in sent) - expected.total()
