"""Records with those before them against plain Python: whatever the order, batches and restarts."""

from __future__ import annotations

import random

import polars as pl
import pytest

from headrace.operators.contract import Arrived, Outcome
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.tables.previous import Pairs, PreviousSpec
from tests.fast.operators.stories import Record, by_key, frame, story
from tests.support.examples import seeds

Pair = tuple[str | None, int, int, int | None]


def spec_of(ttl: int | None, lateness: int = 0) -> PreviousSpec:
    return PreviousSpec(("k",), ("k", "x"), ("x",), ttl, lateness)


def in_one_order(records: list[tuple[int, int]], key: str | None) -> list[tuple[int, int]]:
    """By time; of one time by contents, as the operator has them."""
    contents = pl.DataFrame({"k": [key] * len(records), "x": [value for _, value in records]}, schema={"k": pl.String, "x": pl.Int64})
    ranks = contents.select(pl.struct("k", "x").hash(seed=17)).to_series().to_list()
    return [record for _, record in sorted(zip(ranks, records, strict=True), key=lambda pair: (pair[1][0], pair[0]))]


def wanted(records: list[Record], ttl: int | None) -> list[Pair]:
    found: list[Pair] = []
    for key, pairs in by_key(records).items():
        ordered = in_one_order(pairs, key)
        for place, (time, value) in enumerate(ordered):
            before = ordered[place - 1] if place else None
            near = before is not None and (ttl is None or time - before[0] < ttl)
            found.append((key, time, value, before[1] if near and before is not None else None))
    return sorted(found, key=str)


def emitted(outcome: Outcome) -> list[Pair]:
    return [row for result in outcome.results for row in result.select("k", "_time", "x", "previous_x").rows()]


@pytest.mark.parametrize("block", range(4))
def test_each_record_has_the_one_before_it_in_event_time(block: int) -> None:
    for seed in seeds(8, block):
        chance = random.Random(seed)
        spec = spec_of(chance.choice([1, 5, 20, None]), chance.choice([0, 0, 15]))
        told, store, pairs = story(seed), MemoryStore(), Pairs(spec)
        held: list[Pair] = []
        accepted: list[Record] = []
        for time, records in [*told.epochs, (told.end, ())]:
            cut = chance.randrange(len(records) + 1)
            parts = [spec.enter(frame(part), time) for part in (records[:cut], records[cut:]) if part]
            limit = time.before - spec.lateness
            accepted += [record for record in records if record[1] >= limit]
            assert sum(0 if part.late is None else part.late.height for part in parts) == sum(record[1] < limit for record in records)
            arrived = [part.rows for part in parts]
            chance.shuffle(arrived)
            held += emitted(pairs.run(Arrived(arrived), time, store))
            passed = [record for record in accepted if record[1] < time.after - spec.lateness]
            assert sorted(held, key=str) == wanted(passed, spec.ttl), f"seed {seed}, {time}"
            if chance.random() < 0.4:
                manifest, pairs = pairs.manifest(), Pairs(spec)
                pairs.restore(manifest, store)
        assert spec.ttl is None or pairs.size.rows == 0


def test_records_of_one_time_follow_each_other_the_same_way_in_whatever_order_they_come() -> None:
    spec, records, seen = spec_of(None), [("a", 5, value) for value in range(9)], set()
    for seed in range(6):
        random.Random(seed).shuffle(records)
        pairs, store, held = Pairs(spec), MemoryStore(), []
        for number, batch in enumerate((records[:4], records[4:])):
            rows = spec.enter(frame(batch), EpochTime(number, BEGINNING, BEGINNING)).rows
            held += emitted(pairs.run(Arrived([rows]), EpochTime(number, BEGINNING, 0 if number == 0 else END), store))
        seen.add(tuple(sorted(held, key=str)))
    assert len(seen) == 1
    assert sum(before is None for *_, before in next(iter(seen))) == 1


def test_what_a_key_leaves_behind_is_forgotten_after_its_time() -> None:
    spec, store, before, most = spec_of(80), MemoryStore(), BEGINNING, 0
    pairs = Pairs(spec)
    for number in range(60):
        rows = spec.enter(frame([(f"k{number * 10 + key}", number * 10, 0) for key in range(10)]), EpochTime(0, BEGINNING, 0)).rows
        pairs.run(Arrived([rows]), EpochTime(number, before, number * 10), store)
        before, most = number * 10, max(most, pairs.size.rows)
    assert most <= 12 * 10
