"""Random compositions of joins, windows, filters and unions of streams, whatever the order, batches, shards and crashes: by brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from tests.support.examples import seeds, soaked
from tests.support.joining import Sent, run, way
from tests.support.streams import START, at

BOUND = 15
MERGED = """concat('(', coalesce(id, '-'), ' ', coalesce(id_right, '-'), ')') as id, k,
    case when n is null then n_right when n_right is null then n else n + n_right end as n, coalesce(at, at_right) as at"""


@dataclass(frozen=True)
class Fact:
    """A record of any step; `time` is its event time, which behind a join may be later than `at`."""

    id: str
    k: str | None
    n: int | None
    at: datetime
    time: datetime


@dataclass(frozen=True)
class Made:
    """A stream, and the records that it must have; `apart`: no two of them have one time."""

    words: str
    stream: Any
    facts: tuple[Fact, ...]
    apart: bool = False

    @property
    def output(self) -> str:
        """What can show its records: a sink, a view by their key, or nothing, if they change and have no key."""
        node = self.stream.node
        return "sink" if not node.changes else "view" if node.keys else ""


Step = Callable[[random.Random, Sequence[Made]], Made]
CONDITIONS: dict[str | None, Callable[[Fact, Fact], bool]] = {
    None: lambda one, two: True,
    "n < n_right": lambda one, two: one.n is not None and two.n is not None and one.n < two.n,
    "n <> n_right or n is null": lambda one, two: one.n is None or (two.n is not None and one.n != two.n),
}
FILTERS: dict[str, Callable[[Fact], bool]] = {
    "n % 2 = 0": lambda fact: fact.n is not None and fact.n % 2 == 0,
    "k <> 'a'": lambda fact: fact.k is not None and fact.k != "a",
    "k is null": lambda fact: fact.k is None,
    "k is not null": lambda fact: fact.k is not None,
    "n is not null": lambda fact: fact.n is not None,
}


def merged(one: Fact | None, two: Fact | None, time: datetime | None = None) -> Fact:
    first, *second = [fact for fact in (one, two) if fact is not None]
    numbers = [fact.n for fact in (first, *second) if fact.n is not None]
    latest = max(fact.time for fact in (first, *second)) if time is None else time
    ids = " ".join("-" if fact is None else fact.id for fact in (one, two))
    return Fact(f"({ids})", first.k, sum(numbers) if numbers else None, first.at, latest)


def within(chance: random.Random, made: Sequence[Made]) -> Made:
    left, right = chance.choice(made), chance.choice(made)
    how, where = chance.choice(["inner", "left", "right", "full"]), chance.choice([None, None, *CONDITIONS])
    before, after = chance.choice([0, 2, 7, 30]), chance.choice([0, 1, 4, 20])
    joined = left.stream.join_within(right.stream, on="k", within=(f"{before}s", f"{after}s"), how=how, where=where)
    pairs = [
        (one, two)
        for one in left.facts
        for two in right.facts
        if one.k is not None and one.k == two.k and CONDITIONS[where](one, two)
        if one.time - timedelta(seconds=before) <= two.time <= one.time + timedelta(seconds=after)
    ]
    facts = [merged(*pair) for pair in pairs]
    ones, twos = {id(one) for one, _ in pairs}, {id(two) for _, two in pairs}
    facts += [merged(one, None) for one in left.facts if id(one) not in ones] if how in ("left", "full") else []
    facts += [merged(None, two) for two in right.facts if id(two) not in twos] if how in ("right", "full") else []
    words, kept = f"({left.words} {how} {before} {after} {where} {right.words})", chance.choice([None, None, "k is null", "k is not null"])
    if kept is None:
        return Made(words, joined.select(MERGED), tuple(facts))
    # Before the select: that forgets which columns are never null.
    return Made(f"({words} where {kept})", joined.where(kept).select(MERGED), tuple(filter(FILTERS[kept], facts)))


def as_of(chance: random.Random, made: Sequence[Made]) -> Made:
    left, right = chance.choice(made), chance.choice([one for one in made if one.apart])
    how, ttl = chance.choice(["inner", "left"]), chance.choice([None, 10])
    table = right.stream.to_table("k", ttl=None if ttl is None else f"{ttl}s")
    facts = []
    for one in left.facts:
        versions = [two for two in right.facts if one.k is not None and two.k == one.k and two.time <= one.at]
        two = max(versions, key=lambda version: version.time, default=None)
        if two is not None and ttl is not None and two.time + timedelta(seconds=ttl) <= one.at:
            two = None
        if two is not None or how == "left":
            facts.append(merged(one, two, max(one.time, one.at)))
    joined = left.stream.join(table.as_of("at", history="2 hours"), on="k", how=how)
    return Made(f"({left.words} {how} as of {ttl} {right.words})", joined.select(MERGED), tuple(facts))


def union(chance: random.Random, made: Sequence[Made]) -> Made:
    one, two = chance.choice(made), chance.choice(made)
    return Made(f"({one.words} and {two.words})", one.stream.union(two.stream), one.facts + two.facts)


def where(chance: random.Random, made: Sequence[Made]) -> Made:
    one, (condition, holds) = chance.choice(made), chance.choice([*FILTERS.items()])
    return Made(f"({one.words} where {condition})", one.stream.where(condition), tuple(filter(holds, one.facts)), one.apart)


def window(chance: random.Random, made: Sequence[Made]) -> Made:
    one, size = chance.choice(made), timedelta(seconds=chance.choice([5, 20]))
    counted = one.stream.window(tumbling(size), by="k").agg(rows="count(*)", total="sum(n)")
    groups: dict[tuple[str | None, datetime], list[Fact]] = {}
    for fact in one.facts:
        groups.setdefault((fact.k, START + (fact.time - START) // size * size), []).append(fact)
    facts = []
    for (k, start), rows in groups.items():
        numbers = [fact.n for fact in rows if fact.n is not None]
        total = sum(numbers) % 7 if numbers else None
        facts.append(Fact(f"{len(rows)}", k, total, start, start + size - timedelta(microseconds=1)))
    named = counted.select("cast(rows as string) as id, k, cast(total % 7 as int) as n, window_start as at")
    # Windows of several keys end together, but of one key only one does.
    return Made(f"(windows of {size} of {one.words})", named, tuple(facts), apart=True)


STEPS: tuple[Step, ...] = (within, within, within, within, within, as_of, union, where, window)


def source(app: Declaration, chance: random.Random, name: str) -> tuple[Made, list[Sent]]:
    """A stream with records in bursts, some of whose columns are never null."""
    keyed, numbered = chance.random() < 0.5, chance.random() < 0.5
    columns = f"id string not null, k string{' not null' * keyed}, n int{' not null' * numbered}, at timestamp not null"
    sent, second = list[Sent](), 0
    for number in range(chance.choice([0, 12, 12, 16])):
        second += chance.choice([0, 0, 1, 1, 2, 3, 7, 60 if chance.random() < 0.3 else 1])
        k, n = chance.choice(["a", "b", None][: 3 - keyed]), chance.choice([0, 1, 2, 3, None][: 5 - numbered])
        moment = at(second) + timedelta(microseconds=3 * number + "abc".index(name))
        sent.append((name, {"id": f"{name}{number}", "k": k, "n": n, "at": moment}))
    stream = app.stream(name, columns, key="k", time="at", watermark=bounded(f"{BOUND}s", idle="1 day"))
    return Made(name, stream, tuple(Fact(**row, time=row["at"]) for _, row in sent), apart=True), sent


def composed(chance: random.Random, app: Declaration) -> tuple[list[Made], list[Sent]]:
    """Two or three steps, each over sources and results of earlier ones."""
    sources = [source(app, chance, name) for name in "abc"]
    known, made, steps = [one for one, _ in sources], list[Made](), chance.choice([2, 3, 3])
    while len(made) < steps or not made[-1].output:
        try:
            found = chance.choice(STEPS)(chance, known + 3 * made)
        except PlanError:
            continue  # over windows that are corrected
        if len(found.facts) < 300:
            made.append(found)
    return made, [one for _, records in sources for one in records]


@pytest.mark.parametrize("seed", seeds(soaked(600, 100)))
def test_a_random_composition_has_the_records_of_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    app = Declaration("random")
    made, sent = composed(chance, app)
    outputs = {f"out{number}": one for number, one in enumerate(made) if one.output}
    for name, one in outputs.items():
        _ = app.view(name, one.stream) if one.output == "view" else app.sink(one.stream, LogTopic(name), name=name)
    read = {source.name for source in app.plan().sources}
    driver = run(app, way(chance, [one for one in sent if one[0] in read], BOUND))
    assert {name: (driver.late(name), driver.dead_letters(name)) for name in read} == {name: ([], []) for name in read}
    for name, one in outputs.items():
        rows = driver.rows(name)
        found = Counter((row["id"], row["k"], row["n"], row["at"]) for row in rows)
        assert found == Counter((fact.id, fact.k, fact.n, fact.at) for fact in one.facts), one.words
        assert all(row[column.name] is not None for column in one.stream.columns if not column.nullable for row in rows), one.words
