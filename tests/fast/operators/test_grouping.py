"""Group aggregates and tables against plain Python; their changelog takes back exactly what it said."""

from __future__ import annotations

import random
from typing import Any

import polars as pl

from headrace.operators.grouping import Groups, GroupSpec, Latest, TableSpec, aggregate, latest
from headrace.operators.store import MemoryStore
from headrace.operators.time import EpochTime
from tests.fast.operators.stories import AGGREGATES, by_key, frame, story, summary


def apply(held: dict[Any, Any], results: list[pl.DataFrame], columns: list[str]) -> None:
    for row in [row for result in results for row in result.to_dicts()]:
        value = tuple(row[name] for name in columns)
        if row["_op"] > 0:
            held[row["k"]] = value
        else:
            assert held.pop(row["k"]) == value


def test_group_aggregates_equal_plain_python_over_restarts() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        spec, store, held = GroupSpec(("k",), AGGREGATES, ttl=None), MemoryStore(), dict[Any, Any]()
        groups, sent = Groups(spec, shard=0), []
        for time, records in story(seed).epochs:
            sent += records
            results = groups.run([aggregate(spec, frame(records))] if records else [], time, store)
            apply(held, results, ["n", "total", "top", "latest"])
            if chance.random() < 0.3:
                manifest, groups = groups.manifest(), Groups(spec, shard=0)
                groups.restore(manifest, store)
        assert held == {key: summary(records) for key, records in by_key(sent).items()}, f"seed {seed}"


def test_a_table_has_the_latest_record_of_each_key_by_event_time() -> None:
    for seed in range(20):
        spec, store, held, sent = TableSpec(("k",), ttl=None), MemoryStore(), dict[Any, Any](), []
        table = Latest(spec, shard=0)
        for time, records in story(seed).epochs:
            sent += records
            apply(held, table.run([latest(spec, frame(records))] if records else [], time, store), ["_time", "x"])
        wanted = {}
        for key, at, value in sent:
            if key not in wanted or at >= wanted[key][0]:
                wanted[key] = (at, value)
        assert held == wanted, f"seed {seed}"


def test_a_key_without_records_for_its_ttl_is_taken_back_and_forgotten() -> None:
    spec, store, held = GroupSpec(("k",), AGGREGATES, ttl=100), MemoryStore(), dict[Any, Any]()
    groups = Groups(spec, shard=0)
    apply(held, groups.run([aggregate(spec, frame([("old", 0, 1)]))], EpochTime(1, 0, 0), store), ["n"])
    for epoch in range(2, 40):
        records = [("new", epoch * 10, 1)]
        apply(held, groups.run([aggregate(spec, frame(records))], EpochTime(epoch, epoch * 10 - 10, epoch * 10), store), ["n"])
    assert held == {"new": (38,)}
    assert groups.rows == 1
    apply(held, groups.run([aggregate(spec, frame([("old", 400, 1)]))], EpochTime(40, 400, 400), store), ["n"])
    assert held["old"] == (1,)
