"""Patterns before and behind other steps: the order of arrival, epochs, partitions, shards and crashes change nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, session, tumbling
from headrace.log.target import LogTopic
from tests.support.examples import seeds
from tests.support.joining import LEFT, RIGHT, Sent, Way, ordered, records, run, way

BOUND = 15
WITHIN = ("4s", "9s")
# Of rows with `id`, `k` and `v`, in any order that `id` tells.
PATTERNS: Sequence[Mapping[str, Any]] = (
    {"pattern": "A B", "define": {"B": "v > A.v"}, "after": "next row"},
    {"pattern": "A+ B?", "define": {"A": "v >= 2", "B": "v < prev(v)"}},
    {"pattern": "A B*? C", "define": {"A": "v > 1", "C": "v = 0 or v is null"}, "skip": "others"},
    {"pattern": "A B{1,3} !C", "define": {"B": "v <> 1", "C": "v = 4"}, "after": "last B"},
    {"pattern": "^ A (B | C)+ $", "define": {"B": "v > last(A.v)", "C": "count(C.*) < 3"}},
    {
        "pattern": "PERMUTE(A, B, C)",
        "define": {"A": "v > 2", "B": "v < 2", "C": "v = 2 or v is null"},
        "skip": "others",
        "after": "next row",
    },
    {"pattern": "A{2,} {- B -}", "define": {"A": "v > 0", "B": "v <= avg(A.v)"}, "where": "count(distinct v) > 1", "after": "first B"},
)
MEASURES = {"first": "first(id)", "last": "last(id)", "rows": "count(*)", "sum": "sum(v)", "high": "max(v)"}


@dataclass(frozen=True)
class Streams:
    a: Any
    b: Any


def matched(stream: Any, pattern: Mapping[str, Any], by: str = "k") -> Any:
    return stream.match(by=by, within="30 seconds", order="id", measures=MEASURES, **pattern)


def plain(streams: Streams) -> Any:
    return streams.a.select("id", "k", "n as v")


Made = Callable[[Streams, Mapping[str, Any]], Any]
COMPOSITIONS: Mapping[str, Made] = {
    "behind a filter and columns": lambda s, p: matched(s.a.where("n is distinct from 2").with_columns(v="n + 1"), p),
    # Of records with one key, dedup passes on the first that arrives: here that is the same one in any order.
    "behind dedup": lambda s, p: matched(plain(s).union(plain(s)).dedup("id", ttl="20 seconds"), p),
    "behind the previous row": lambda s, p: matched(
        plain(s).with_previous("v", by="k", ttl="20 seconds").select("id", "k", "coalesce(v - previous_v, v) as v"), p
    ),
    "behind a union": lambda s, p: matched(plain(s).union(s.b.select("rid as id", "k", "m as v")), p),
    "behind a join": lambda s, p: matched(
        s.a.join_within(s.b, on="k", within=WITHIN).select("id * 1000 + rid as id", "k", "coalesce(n, 0) + coalesce(m, 1) as v"), p
    ),
    "behind an outer join": lambda s, p: matched(
        s.a.join_within(s.b, on="k", within=WITHIN, how="left").select("id * 1000 + coalesce(rid, 0) as id", "k", "coalesce(n, m) as v"), p
    ),
    "by another key": lambda s, p: matched(plain(s).select("id", "k", "v", "id % 3 as part"), p, by="part"),
    "behind a pattern": lambda s, p: matched(matched(plain(s), p).select("first as id", "k", "rows as v"), PATTERNS[0]),
    "before a pattern": lambda s, p: matched(
        matched(plain(s), PATTERNS[0]).select("first as id", "k", "high as v"), p
    ),
    "before a group": lambda s, p: matched(plain(s), p).group("k", ttl=None).agg(n="count(*)", total="sum(rows)", low="min(first)"),
    "before windows": lambda s, p: matched(plain(s), p).window(tumbling("10 seconds"), by="k").agg(n="count(*)", total="sum(rows)"),
    "before sessions": lambda s, p: matched(plain(s), p).window(session("8 seconds"), by="k").agg(n="count(*)", total="sum(rows)"),
    "before dedup": lambda s, p: matched(plain(s), p).dedup(["k", "rows"], ttl="20 seconds"),
    "before a join": lambda s, p: matched(plain(s), p).join_within(s.b, on="k", within=WITHIN, how="left"),
    "all rows": lambda s, p: plain(s).match(
        by="k", within="30 seconds", order="id", rows="all", **{**p, "pattern": p["pattern"].replace("{- B -}", "B")},
        measures={**MEASURES, "is": "classifier()", "whole": "final count(*)", "whole_sum": "final sum(v)"},
    ),
}  # fmt: skip


def results(made: Made, pattern: Mapping[str, Any], taken: Way) -> tuple[list[Any], dict[str, int]]:
    """What an app gives, without the places of records; and what became of records."""
    app = Declaration("compositions")
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": bounded(f"{BOUND}s", idle="1 day")}
    result = made(Streams(app.stream("a", LEFT, **timed), app.stream("b", RIGHT, **timed)), pattern)
    if result.node.changes or result.node.keys:
        app.view("out", result)
    else:
        app.sink(result, LogTopic("out"), name="out")
    read = {source.name for source in app.plan().sources}
    epochs = [{name: epoch[name] for name in epoch if name in read} for epoch in taken.epochs]
    driver = run(app, replace(taken, epochs=tuple(epoch for epoch in epochs if epoch)))
    rows = [tuple(value for name, value in row.items() if name != "evidence") for row in driver.rows("out")]
    return ordered(rows), {name: len(driver.late(name)) + len(driver.dead_letters(name)) for name in read}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_patterns_among_other_steps_do_not_depend_on_how_records_arrive(name: str) -> None:
    for seed in seeds(12):
        chance = random.Random(f"{name} {seed}")
        sent: list[Sent] = records(chance, 40)
        pattern = PATTERNS[seed % len(PATTERNS)]
        at_once: dict[str, list[Any]] = {}
        for stream, row in sent:
            at_once.setdefault(stream, []).append(row)
        wanted, lost = results(COMPOSITIONS[name], pattern, Way((at_once,), frozenset(), {}, 1, 1))
        assert not any(lost.values())
        found, lost = results(COMPOSITIONS[name], pattern, way(chance, sent, BOUND - 1))
        assert not any(lost.values())
        assert found == wanted, f"{name}, seed {seed}: {pattern}"
