"""Keyed state against a dictionary, with hashes that collide, merges, removals and workers that take turns."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from headrace.operators.state import keyed
from headrace.operators.state.blob import decode
from headrace.operators.state.key_index import Index
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.store import MemoryStore
from tests.support.examples import seeds

KEYS = {"a": pl.String, "b": pl.Int64}
ROWS = {**KEYS, "v": pl.Int64, GONE: pl.Boolean}
Key = tuple[str | None, int]


class Colliding(KeyedState):
    """Hashes so poor that most keys share one."""

    def _hashes(self, frame: pl.DataFrame) -> np.ndarray:
        return super()._hashes(frame) % np.uint64(40)


class Weighing(MemoryStore):
    """Notes how many rows each blob has that is put."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[int] = []

    def put(self, name: str, blob: bytes) -> None:
        super().put(name, blob)
        self.written.append(decode(blob).height)


def held(rows: pl.DataFrame | None) -> dict[Key, int]:
    return {} if rows is None else {(row["a"], row["b"]): row["v"] for row in rows.to_dicts()}


@pytest.mark.parametrize("kind", [KeyedState, Colliding])
def test_state_equals_a_dictionary_in_any_worker(kind: type[KeyedState], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds(4):
        chance = random.Random(seed)
        monkeypatch.setattr(keyed, "FAN_IN", chance.choice([2, 3, 16]))
        monkeypatch.setattr(keyed, "_LARGE", chance.choice([1, 30, 1_000]))
        monkeypatch.setattr(keyed, "_LITTLE", chance.choice([0, 10]))
        store, model = MemoryStore(), dict[Key, int]()
        here, there = kind("k", KEYS), kind("k", KEYS)
        for epoch in range(20):
            keys = list({(chance.choice(["x", "y", None]), chance.randrange(12)) for _ in range(chance.randrange(12))})
            asked = pl.DataFrame(keys, schema=KEYS, orient="row")
            found = held(here.find(asked)) if keys else {}
            assert found == {key: model[key] for key in keys if key in model}, f"seed {seed}, epoch {epoch}"
            rows = [(*key, epoch * 100 + place, chance.random() < 0.3) for place, key in enumerate(keys)]
            located = here.locate(asked) if keys and chance.random() < 0.5 else None
            assert located is None or [keys[place] for place in located.places] == list(held(located.found))
            here.put(pl.DataFrame(rows, schema=ROWS, orient="row"), store, located)
            for a, b, value, gone in rows:
                model.pop((a, b), None) if gone else model.update({(a, b): value})
            if chance.random() < 0.4:
                there = there if chance.random() < 0.7 else kind("k", KEYS)
                there.restore(here.manifest(), store)
                here, there = there, here
            assert held(here.all()) == model, f"seed {seed}, epoch {epoch}"
            assert here.size.rows == len(model)


def test_what_a_failed_epoch_changed_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    for fan_in in (2, 3, 16):
        monkeypatch.setattr(keyed, "FAN_IN", fan_in)
        store, state = MemoryStore(), KeyedState("k", KEYS)
        for epoch in range(8):
            rows = [("x", key, epoch, (key + epoch) % 5 == 0) for key in range(epoch, epoch + 6)]
            state.put(pl.DataFrame(rows, schema=ROWS, orient="row"), store)
            committed, blobs, before = state.manifest(), dict(store.blobs), held(state.all())
            state.put(pl.DataFrame([("x", key, -1, key % 2 == 0) for key in range(20)], schema=ROWS, orient="row"), store)
            store.blobs = blobs
            state.restore(committed, store)
            assert held(state.all()) == before, f"fan-in {fan_in}, epoch {epoch}"
            assert held(state.find(pl.DataFrame([("x", key) for key in range(20)], schema=KEYS, orient="row"))) == before


def test_an_epoch_writes_what_it_touched_however_many_keys_there_are() -> None:
    written = []
    for count in (1_000, 100_000):
        store, state = MemoryStore(), KeyedState("k", ["a"])
        state.put(pl.DataFrame({"a": range(count), "v": range(count)}), store)
        before = set(store.blobs)
        state.put(pl.DataFrame({"a": range(100), "v": range(100)}), store)
        written.append(sum(len(blob) for name, blob in store.blobs.items() if name not in before))
    assert written[0] == written[1]


def test_removed_keys_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "FAN_IN", 2)
    store, state = MemoryStore(), KeyedState("k", ["a"])
    for epoch in range(64):
        rows = pl.DataFrame({"a": [epoch, epoch - 1], "v": [epoch, None], GONE: [False, True]})
        state.put(rows, store)
    assert state.size.rows == 1
    assert sum(len(blob) for blob in store.blobs.values()) < 5_000


@pytest.mark.parametrize("kind", [KeyedState, Colliding])
def test_a_key_that_goes_and_returns_again_and_again_is_found_as_quickly(kind: type[KeyedState], monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    slots = Index.slots
    monkeypatch.setattr(Index, "slots", lambda self, hashes: looks.append(len(hashes)) or slots(self, hashes))
    store, state, keys = MemoryStore(), kind("k", ["a"]), pl.DataFrame({"a": range(5)})
    spent = []
    for _ in range(50):
        looks.clear()
        state.put(keys, store)
        found = state.find(keys)
        assert found is not None
        assert sorted(found.get_column("a")) == list(range(5))
        state.put(keys.with_columns(pl.lit(True).alias(GONE)), store)
        assert state.find(keys) is None
        spent.append(sum(looks))
    assert max(spent[10:]) <= 2 * max(spent[:10])


def test_what_is_stored_falls_back_when_most_keys_are_gone() -> None:
    store, state = MemoryStore(), KeyedState("k", ["a"])
    for epoch in range(4):
        state.put(pl.DataFrame({"a": range(1_000 * epoch, 1_000 * epoch + 1_000)}), store)
    most = sum(len(blob) for blob in store.blobs.values())
    state.put(pl.DataFrame({"a": range(1, 4_000)}).with_columns(pl.lit(True).alias(GONE)), store)
    assert state.size.rows == 1
    assert sum(len(blob) for blob in store.blobs.values()) == state.size.bytes < most / 4
    found = state.find(pl.DataFrame({"a": [0, 1]}))
    assert found is not None
    assert found.get_column("a").to_list() == [0]


def test_nothing_is_stored_when_all_keys_are_gone() -> None:
    store, state = MemoryStore(), KeyedState("k", ["a"])
    for epoch in range(3):
        state.put(pl.DataFrame({"a": [epoch, epoch + 10]}), store)
    state.put(pl.DataFrame({"a": [0, 1, 2, 10, 11, 12]}).with_columns(pl.lit(True).alias(GONE)), store)
    assert state.size == (0, 0)
    assert store.blobs == {}
    state.put(pl.DataFrame({"a": [1]}), store)
    assert state.size.rows == 1


@pytest.mark.parametrize("hot", [1.0, 0.1])
def test_no_epoch_writes_much_more_than_it_brings(hot: float, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, batch, large = 2_000, 100, 200
    monkeypatch.setattr(keyed, "_LARGE", large)
    store, state, random = Weighing(), KeyedState("k", ["a"]), np.random.default_rng(3)
    for first in range(0, keys, 500):
        state.put(pl.DataFrame({"a": range(first, first + 500), "v": 0}), store)
    store.written.clear()
    for epoch in range(100):
        touched = random.choice(int(keys * hot), batch, replace=False)
        state.put(pl.DataFrame({"a": touched, "v": epoch}), store)
        # Twice what there is, and what an epoch may leave for the next ones to write anew.
        assert sum(decode(blob).height for blob in store.blobs.values()) < 3 * keys + 1_000
    assert len(store.written) == 100
    assert max(store.written) <= batch + 2 * large + 500
    assert sum(store.written) / 100 < 4 * batch
    assert state.size.rows == keys


def test_a_failed_epoch_that_moved_the_oldest_rows_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "_LITTLE", 0)
    monkeypatch.setattr(keyed, "_LARGE", 10)
    store, state = MemoryStore(), KeyedState("k", ["a"])
    for epoch in range(30):
        state.put(pl.DataFrame({"a": range(epoch % 7, 40, 7), "v": epoch}), store)
        committed, blobs, before = state.manifest(), dict(store.blobs), state.all()
        state.put(pl.DataFrame({"a": range(40), "v": -1}), store)
        store.blobs = blobs
        state.restore(committed, store)
        assert before is not None
        found = state.find(pl.DataFrame({"a": range(40)}))
        assert found is not None
        assert found.sort("a").equals(before.sort("a"))
