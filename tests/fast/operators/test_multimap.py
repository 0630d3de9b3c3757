"""Multimaps, timed rows and versions against plain models, with hashes that collide, merges, removals and workers that take turns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from headrace.operators.changes import TIME
from headrace.operators.state import keyed, row_lookup
from headrace.operators.state.multimap import Multimap
from headrace.operators.state.row_lookup import TimeSpan, key_hashes
from headrace.operators.state.store import MemoryStore
from headrace.operators.state.timed_rows import TimedRows
from headrace.operators.state.versions import Versions
from tests.support.examples import seeds

KEYS = {"a": pl.String, "b": pl.Int64}
ROWS = {**KEYS, "id": pl.Int64, "v": pl.Int64, TIME: pl.Int64}
VERSIONS = {**KEYS, "v": pl.Int64, TIME: pl.Int64}
Key = tuple[str | None, int]


def frame(rows: list[Any], schema: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


@contextmanager
def poor_hashes(poor: bool) -> Iterator[None]:
    """Hashes so poor that most keys share one."""
    with pytest.MonkeyPatch.context() as patch:
        if poor:
            patch.setattr(row_lookup, "key_hashes", lambda rows, columns: key_hashes(rows, columns) % np.uint64(3))
        yield


def some_keys(chance: random.Random) -> list[Key]:
    return list({(chance.choice(["x", "y", None]), chance.randrange(6)) for _ in range(chance.randrange(1, 8))})


@pytest.mark.parametrize("poor", [False, True])
def test_a_multimap_equals_a_dictionary_in_any_worker(poor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds(16):
        chance = random.Random(seed)
        monkeypatch.setattr(keyed, "FAN_IN", chance.choice([2, 3, 16]))
        monkeypatch.setattr(keyed, "_LARGE", chance.choice([1, 30, 1_000]))
        monkeypatch.setattr(keyed, "_LITTLE", chance.choice([0, 10]))
        store, model = MemoryStore(), dict[tuple[Key, int], tuple[int, int]]()
        here, there = (Multimap("m", KEYS, ["id"], over=pl.col(TIME)) for _ in range(2))
        with poor_hashes(poor):
            for epoch in range(20):
                said = {(key, chance.randrange(5)): (epoch, chance.randrange(50)) for key in some_keys(chance) for _ in range(3)}
                new = {identity: row for identity, row in said.items() if chance.random() < 0.7}
                gone = [identity for identity in said if identity not in new]
                rows = frame([(*key, number, *row) for (key, number), row in new.items()], ROWS)
                here.change(rows, frame([(*key, number, None, None) for key, number in gone], ROWS), store)
                model = {identity: row for identity, row in model.items() if identity not in gone} | new
                if chance.random() < 0.4:
                    there = there if chance.random() < 0.7 else Multimap("m", KEYS, ["id"], over=pl.col(TIME))
                    there.restore(here.manifest(), store)
                    here, there = there, here
                if chance.random() < 0.3:
                    over = here.reached("over", epoch)
                    due = {identity for identity, (_, time) in model.items() if time <= epoch}
                    assert {((a, b), number) for a, b, number, _, _ in ([] if over is None else over.rows())} == due
                    here.remove(over if over is not None else rows.clear(), store)
                    model = {identity: row for identity, row in model.items() if identity not in due}
                check(here, model, some_keys(chance), f"seed {seed}, epoch {epoch}")


def check(state: Multimap, model: dict[tuple[Key, int], tuple[int, int]], keys: list[Key], said: str) -> None:
    asked = frame(keys, KEYS)
    found = state.find(asked)
    rows = [] if found is None else [(place, *row) for place, row in zip(found.places.tolist(), found.rows.rows(), strict=True)]
    wanted = [
        (place, *key, number, *row)
        for place, key in enumerate(keys)
        for (other, number), row in model.items()
        if other == key and None not in key
    ]
    assert sorted(rows) == sorted(wanted), said
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert all(one[-1] <= other[-1] for one, other in pairwise(rows) if one[0] == other[0])
    assert state.having(asked).tolist() == [sum(row[0] == place for row in wanted) for place in range(len(keys))]
    assert state.size.rows == len(model)


def test_what_a_failed_epoch_changed_in_a_multimap_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "FAN_IN", 3)
    monkeypatch.setattr(keyed, "_LITTLE", 0)
    store, state = MemoryStore(), Multimap("m", ["b"], ["id"])
    model = dict[tuple[Key, int], tuple[int, int]]()
    for epoch in range(12):
        rows = [("x", epoch % 3, number, epoch, number) for number in range(epoch, epoch + 4)]
        state.put(frame(rows, ROWS), store)
        model |= {(("x", b), number): (v, time) for _, b, number, v, time in rows}
        committed, blobs = state.manifest(), dict(store.blobs)
        state.put(frame([("x", b, number, -1, 0) for b in range(3) for number in range(20)], ROWS), store)
        state.remove(frame([("x", 1, number, -1, 0) for number in range(0, 20, 2)], ROWS), store)
        store.blobs = blobs
        state.restore(committed, store)
        found = state.find(pl.DataFrame({"b": [0, 1, 2]}))
        assert found is not None
        assert {((a, b), number): (v, time) for a, b, number, v, time in found.rows.rows()} == model


class Looked:
    """Counts the rows that lookups compare."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows, compare = 0, row_lookup.RowLookup._same

        def same(lookup: row_lookup.RowLookup, rows: np.ndarray, places: np.ndarray, wanted: pl.DataFrame) -> np.ndarray:
            self.rows += len(rows)
            return compare(lookup, rows, places, wanted)

        patch.setattr(row_lookup.RowLookup, "_same", same)


def test_a_lookup_looks_at_the_rows_of_its_keys_and_of_its_span_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, count = Looked(monkeypatch), 50_000
    numbers = np.arange(count)
    rows = pl.DataFrame({"k": numbers % 1_000, "id": numbers, TIME: numbers})
    store, state, timed = MemoryStore(), Multimap("m", ["k"], ["id"]), TimedRows("t", ["k"])
    state.put(rows, store)
    found = state.find(pl.DataFrame({"k": [3, 4]}))
    assert found is not None
    assert found.rows.height == looked.rows == 100
    looked.rows = 0
    nobody = pl.DataFrame({"k": [None, None]}, schema={"k": pl.Int64})
    state.put(rows[:1_000].with_columns(pl.lit(None, pl.Int64).alias("k")), store)
    assert state.find(nobody) is None
    assert looked.rows == 0
    assert state.same(rows[:5]) is not None
    assert looked.rows == 0
    timed.add(rows)
    near = timed.find(pl.DataFrame({"k": [3]}), TimeSpan(np.array([9_000]), np.array([11_003])))
    assert near is not None
    assert near.rows.get_column(TIME).sort().to_list() == [9_003, 10_003, 11_003]
    assert looked.rows == 3


@pytest.mark.parametrize("poor", [False, True])
def test_timed_rows_are_found_by_key_and_span(poor: bool) -> None:
    for seed in seeds(16):
        chance = random.Random(seed)
        store, model = MemoryStore(), list[tuple[Any, ...]]()
        here, there = TimedRows("t", KEYS), TimedRows("t", KEYS)
        limit = 0
        with poor_hashes(poor):
            for epoch in range(20):
                rows = [(*key, epoch, place, limit + chance.randrange(60)) for place, key in enumerate(some_keys(chance))]
                here.add(frame(rows, ROWS))
                model += rows
                keys = some_keys(chance)
                low = np.array([limit + chance.randrange(60) for _ in keys])
                high = low + np.array([chance.randrange(-3, 30) for _ in keys])
                found = here.find(frame(keys, KEYS), TimeSpan(low, high))
                got = [] if found is None else zip(found.places.tolist(), found.rows.rows(), strict=True)
                assert sorted(got) == sorted(
                    (place, row) for place, key in enumerate(keys) for row in model
                    if row[:2] == key and None not in key and low[place] <= row[-1] <= high[place]
                ), f"seed {seed}, epoch {epoch}"  # fmt: skip
                limit += chance.randrange(20)
                here.save(limit, store)
                model = [row for row in model if row[-1] >= limit]
                if chance.random() < 0.4:
                    there = there if chance.random() < 0.7 else TimedRows("t", KEYS)
                    there.restore(here.manifest(), store)
                    here, there = there, here
            here.save(10_000, store)
            assert here.size == (0, 0)
            assert store.blobs == {}


@pytest.mark.parametrize("ttl", [None, 25])
def test_versions_answer_as_of_any_time_in_their_history(ttl: int | None) -> None:
    for seed in seeds(24):
        chance = random.Random(seed)
        store, model = MemoryStore(), dict[tuple[Key, int], int]()
        here, there = Versions("v", KEYS, ttl), Versions("v", KEYS, ttl)
        horizon = 0
        for epoch in range(15):
            new = {(key, horizon + chance.randrange(50)): chance.randrange(99) for key in some_keys(chance) for _ in range(2)}
            here.put(frame([(*key, value, time) for (key, time), value in new.items()], VERSIONS), store)
            model |= new
            asked = [(key, horizon + chance.randrange(70)) for key in some_keys(chance) for _ in range(2)]
            found = here.as_of(frame([key for key, _ in asked], KEYS), np.array([moment for _, moment in asked]))
            got = {} if found is None else dict(zip(found.places.tolist(), found.rows.rows(), strict=True))
            for place, (key, moment) in enumerate(asked):
                since = max((time for other, time in model if other == key and time <= moment), default=None)
                valid = since is not None and None not in key and (ttl is None or moment < since + ttl)
                wanted = (*key, model[key, since], since) if valid and since is not None else None
                assert got.get(place) == wanted, f"seed {seed}, epoch {epoch}"
            horizon += chance.randrange(20)
            here.evict(horizon, store)
            if chance.random() < 0.4:
                there = there if chance.random() < 0.7 else Versions("v", KEYS, ttl)
                there.restore(here.manifest(), store)
                here, there = there, here
        here.evict(10_000, store)
        kept = {key for key, _ in model if None not in key}
        assert here.size.rows == (len(kept) if ttl is None else 0)
