"""The best rows against plain Python: rows come, change and go, and the changelog always adds up to the top."""

from __future__ import annotations

import random

import polars as pl
import pytest

from headrace.operators.contract import Arrived
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.tables.top import Tops, TopSpec
from tests.support.examples import seeds

# Key, group, score.
Row = tuple[str | None, str | None, int | None]
SCHEMA = {"k": pl.String, "g": pl.String, "s": pl.Int64, "_time": pl.Int64, "_op": pl.Int8}


def spec_of(count: int, per: tuple[str, ...] = ("g",), final: int | None = None) -> TopSpec:
    return TopSpec(per or ("_all",), ("k",), "s", per, count, ("k", "g", "s"), final)


def best(rows: dict[str | None, Row], spec: TopSpec) -> set[Row]:
    found: set[Row] = set()
    for group in {row[1] for row in rows.values()} if spec.per else {None}:
        mine = [row for row in rows.values() if row[2] is not None and (not spec.per or row[1] == group)]
        mine.sort(key=lambda row: (-(row[2] or 0), row[0] is not None, row[0] or ""))
        found |= set(mine[: spec.count])
    return found


def changes(chance: random.Random, rows: dict[str | None, Row], keys: int) -> list[tuple[object, ...]]:
    """A changelog of some rows: new ones, others in their place, or none."""
    log: list[tuple[object, ...]] = []
    for _ in range(chance.randrange(keys)):
        key = f"k{chance.randrange(keys)}" if chance.random() < 0.95 else None
        if key in rows:
            log.append((*rows.pop(key), 0, -1))
        if chance.random() < 0.7:
            rows[key] = (key, chance.choice(["a", "b", None]), chance.randrange(9) if chance.random() < 0.9 else None)
            log.append((*rows[key], 0, 1))
    return log


def packets(log: list[tuple[object, ...]], spec: TopSpec, time: EpochTime, parts: int = 2) -> list[pl.DataFrame]:
    """A changelog as shards give it: all of a key from one of them, in its order."""
    whole = pl.DataFrame(log, schema=SCHEMA, orient="row")
    shard = pl.col("k").fill_null("").str.len_bytes() % parts
    return [spec.enter(part, time).rows for part in (whole.filter(shard == number) for number in range(parts)) if part.height]


def fold(held: set[Row], results: list[pl.DataFrame]) -> None:
    for row in [row for result in results for row in result.select("k", "g", "s", "_op").rows()]:
        if row[3] > 0:
            assert row[:3] not in held, f"{row} is emitted twice"
            held.add(row[:3])
        else:
            held.remove(row[:3])


@pytest.mark.parametrize("per", [("g",), ()], ids=["per group", "of all"])
@pytest.mark.parametrize("keys", [4, 40, 300])
def test_what_is_emitted_adds_up_to_the_best_rows(keys: int, per: tuple[str, ...]) -> None:
    for seed in seeds(3):
        chance = random.Random(seed)
        spec, store = spec_of(chance.choice([1, 2, 5]), per), MemoryStore()
        tops, rows, held = Tops(spec), {}, set()
        for number in range(10):
            log = changes(chance, rows, keys)
            time = EpochTime(number, BEGINNING, BEGINNING)
            fold(held, list(tops.run(Arrived(packets(log, spec, time)), time, store).results))
            assert held == best(rows, spec), f"seed {seed}, epoch {number}"
            assert tops.size.rows == sum(row[2] is not None for row in rows.values())
            if chance.random() < 0.4:
                manifest, tops = tops.manifest(), Tops(spec)
                tops.restore(manifest, store)


def test_the_next_one_comes_forth_however_many_leave() -> None:
    spec, store = spec_of(3, ()), MemoryStore()
    tops, held = Tops(spec), set()
    rows: dict[str | None, Row] = {f"k{number:03}": (f"k{number:03}", "a", number) for number in range(120)}
    time = EpochTime(0, BEGINNING, BEGINNING)
    fold(held, list(tops.run(Arrived(packets([(*row, 0, 1) for row in rows.values()], spec, time, 1)), time, store).results))
    while rows:
        leaving = [rows.pop(row[0]) for row in best(rows, spec_of(2, ()))]
        fold(held, list(tops.run(Arrived(packets([(*row, 0, -1) for row in leaving], spec, time, 1)), time, store).results))
        assert held == best(rows, spec)


def test_a_group_that_is_past_correction_is_forgotten_and_stands() -> None:
    spec, store = spec_of(2, final=5), MemoryStore()
    tops = Tops(spec)
    log = [(f"k{number}", "a", number, 10, 1) for number in range(5)]
    assert tops.run(Arrived(packets(log, spec, EpochTime(1, 0, 11), 1)), EpochTime(1, 0, 11), store).results
    assert tops.size.rows == 5
    assert not tops.run(Arrived(), EpochTime(2, 11, 16), store).results
    assert tops.size.rows == 0
    assert not tops.run(Arrived(), EpochTime(3, 16, END), store).results
