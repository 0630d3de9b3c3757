"""Group aggregates and tables against plain Python; their changelog retracts exactly what it emitted."""

from __future__ import annotations

import random
from typing import Any

import polars as pl

from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.tables.groups import Groups, GroupSpec, Latest, TableSpec
from tests.fast.operators.stories import AGGREGATES, CHANGING, by_key, changelog, entered, frame, run, story, summary
from tests.support.examples import seeds


def apply(held: dict[Any, Any], results: list[pl.DataFrame], columns: list[str]) -> None:
    for row in [row for result in results for row in result.to_dicts()]:
        value = tuple(row[name] for name in columns)
        if row["_op"] > 0:
            held[row["k"]] = value
        else:
            assert held.pop(row["k"]) == value


def test_group_aggregates_equal_plain_python_over_restarts() -> None:
    for seed in seeds(12):
        chance = random.Random(seed)
        spec, store, held = GroupSpec(("k",), AGGREGATES, ttl=None), MemoryStore(), dict[Any, Any]()
        groups, sent = Groups(spec), []
        for time, records in story(seed).epochs:
            sent += records
            results = run(groups, [entered(spec, frame(records))] if records else [], time, store)
            apply(held, results, ["n", "total", "top", "latest"])
            if chance.random() < 0.3:
                manifest, groups = groups.manifest(), Groups(spec)
                groups.restore(manifest, store)
        assert held == {key: summary(records) for key, records in by_key(sent).items()}, f"seed {seed}"


def test_a_table_has_the_latest_record_of_each_key_by_event_time() -> None:
    for seed in seeds(12):
        spec, store, held, sent = TableSpec(("k",), ttl=None), MemoryStore(), dict[Any, Any](), []
        table = Latest(spec)
        for time, records in story(seed).epochs:
            places = pl.int_range(len(sent), len(sent) + len(records), eager=True)
            sent += records
            placed = frame(records).with_columns(pl.lit(0).alias("_partition"), places.alias("_offset"))
            apply(held, run(table, [entered(spec, placed)] if records else [], time, store), ["_time", "x"])
        wanted = {}
        for key, at, value in sent:
            if key not in wanted or at >= wanted[key][0]:
                wanted[key] = (at, value)
        assert held == wanted, f"seed {seed}"


def test_a_table_keeps_nothing_of_where_its_records_came_from() -> None:
    table, store = Latest(TableSpec(("k",), ttl=None)), MemoryStore()
    records = frame([("a", 7, 1), ("a", 7, 2), ("b", 7, 3)]).with_columns(
        pl.lit(0, pl.Int32).alias("_partition"), pl.Series("_offset", [5, 4, 6], pl.Int64)
    )
    (result,) = run(table, [records], EpochTime(1, 0, 0), store)
    # Of equal times the one with the higher offset came last.
    assert sorted(result.select("k", "x", "_time").rows()) == [("a", 1, 7), ("b", 3, 7)]
    kept = table._state.all()
    assert kept is not None
    assert set(kept.columns) == {"k", "x", "_last"}


def test_a_key_without_records_for_its_ttl_is_retracted_and_forgotten() -> None:
    spec, store, held = GroupSpec(("k",), AGGREGATES, ttl=100), MemoryStore(), dict[Any, Any]()
    groups = Groups(spec)
    apply(held, run(groups, [entered(spec, frame([("old", 0, 1)]))], EpochTime(1, 0, 0), store), ["n"])
    for epoch in range(2, 40):
        records = [("new", epoch * 10, 1)]
        apply(held, run(groups, [entered(spec, frame(records))], EpochTime(epoch, epoch * 10 - 10, epoch * 10), store), ["n"])
    assert held == {"new": (38,)}
    assert groups.size.rows == 1
    apply(held, run(groups, [entered(spec, frame([("old", 400, 1)]))], EpochTime(40, 400, 400), store), ["n"])
    assert held["old"] == (1,)


def test_a_key_is_retracted_in_the_epoch_in_which_it_expires_and_not_before() -> None:
    spec, store, held = GroupSpec(("k",), AGGREGATES, ttl=100), MemoryStore(), dict[Any, Any]()
    groups = Groups(spec)
    apply(held, run(groups, [entered(spec, frame([("a", 0, 1), ("b", 50, 1)]))], EpochTime(1, 0, 50), store), ["n"])
    apply(held, run(groups, [], EpochTime(2, 50, 99), store), ["n"])
    assert set(held) == {"a", "b"}
    apply(held, run(groups, [], EpochTime(3, 99, 100), store), ["n"])
    assert set(held) == {"b"}
    manifest, groups = groups.manifest(), Groups(spec)
    groups.restore(manifest, store)
    apply(held, run(groups, [], EpochTime(4, 100, 150), store), ["n"])
    assert held == {}
    assert groups.size.rows == 0


def test_a_key_whose_records_were_all_retracted_is_gone() -> None:
    spec, store, held = GroupSpec(("k",), CHANGING, ttl=None), MemoryStore(), dict[Any, Any]()
    groups = Groups(spec)
    for epoch, records in enumerate(
        [[("a", 0, 5, 1), ("b", 0, 1, 1)], [("a", 0, 5, -1)], [("a", 0, 7, 1)], [("a", 0, 7, -1), ("a", 0, 8, 1)]]
    ):
        apply(held, run(groups, [entered(spec, changelog(records))], EpochTime(epoch, 0, 0), store), ["n", "total"])
        assert held == [{"a": (1, 5), "b": (1, 1)}, {"b": (1, 1)}, {"a": (1, 7), "b": (1, 1)}, {"a": (1, 8), "b": (1, 1)}][epoch]
        assert groups.size.rows == len(held)
