"""Duplicates against plain Python: whatever the packets, batches and restarts, the same records go on and every other is counted."""

from __future__ import annotations

import random

import polars as pl
import pytest

from headrace.operators.contract import Arrived, Outcome
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.tables.dedup import DedupSpec, Firsts
from tests.fast.operators.stories import Record, frame, story
from tests.support.examples import examples, seeds

TTLS = [1, 3, 10, 40, None]


class Reference:
    """Records in the order in which they came, one by one."""

    def __init__(self, ttl: int | None) -> None:
        self._ttl = ttl
        self._gone_on: dict[str | None, list[int]] = {}

    def passes(self, record: Record) -> bool:
        key, time, _ = record
        others = self._gone_on.setdefault(key, [])
        if any(self._ttl is None or abs(time - other) < self._ttl for other in others):
            return False
        others.append(time)
        return True


def spec_of(ttl: int | None) -> DedupSpec:
    return DedupSpec(("k",), ("k", "x"), ttl)


def packets(records: list[tuple[int, Record]], time: EpochTime, spec: DedupSpec, chance: random.Random) -> list[pl.DataFrame]:
    """Records with their offsets as tasks hand them over: in any order, cut anywhere."""
    numbers = pl.Series("_offset", [offset for offset, _ in records], pl.Int64)
    whole = frame([record for _, record in records]).with_columns(numbers, pl.lit(0, pl.Int32).alias("_partition"))
    mixed = whole.sample(fraction=1, shuffle=True, seed=chance.randrange(1000))
    cut = chance.randrange(mixed.height + 1)
    return [spec.enter(part, time).rows for part in (mixed[:cut], mixed[cut:]) if part.height]


def went_on(outcome: Outcome) -> list[Record]:
    return [row for result in outcome.results for row in result.select("k", "_time", "x").rows()]


@pytest.mark.parametrize("block", range(4))
def test_the_first_of_each_key_goes_on_and_the_others_are_counted(block: int) -> None:
    for seed in seeds(8, block):
        chance = random.Random(seed)
        spec = spec_of(chance.choice(TTLS))
        told, store, firsts, reference, offset = story(seed), MemoryStore(), Firsts(spec), Reference(spec.ttl), 0
        for time, records in [*told.epochs, (told.end, ())]:
            came = list(enumerate(records, offset))
            offset += len(came)
            wanted = [record for record in records if record[1] >= time.before and reference.passes(record)]
            late = sum(record[1] < time.before for record in records)
            outcome = firsts.run(Arrived(packets(came, time, spec, chance)), time, store)
            assert went_on(outcome) == wanted, f"seed {seed}, {time}"
            duplicates = len(records) - late - len(wanted)
            counted = {"taken": len(records) - late, "out": len(wanted), "duplicate": duplicates}
            assert {"taken": 0, "out": 0, "duplicate": 0} | dict(outcome.counts) == counted
            if chance.random() < 0.4:
                manifest, firsts = firsts.manifest(), Firsts(spec)
                firsts.restore(manifest, store)
        assert spec.ttl is None or firsts.size.rows == 0


@pytest.mark.parametrize("ttl", [1, 5, 1000])
def test_many_records_of_one_key_in_an_epoch_are_judged_one_after_the_other(ttl: int) -> None:
    chance = random.Random(ttl)
    records: list[Record] = [(chance.choice("ab"), chance.randrange(2000), number) for number in range(1000)]
    reference, spec = Reference(ttl), spec_of(ttl)
    wanted = [record for record in records if reference.passes(record)]
    for batches in (1, 3, examples(50)):
        firsts, store, held = Firsts(spec), MemoryStore(), []
        size = -(-len(records) // batches)
        for number, first in enumerate(range(0, len(records), size)):
            time = EpochTime(number, BEGINNING, BEGINNING)
            came = list(enumerate(records))[first : first + size]
            held += went_on(firsts.run(Arrived(packets(came, time, spec, chance)), time, store))
        assert held == wanted


def test_records_without_a_place_are_taken_by_time_and_then_by_their_contents() -> None:
    records: list[Record] = [("a", 5, value) for value in range(6)] + [("a", 7, 9)]
    spec, seen = spec_of(10), set()
    for seed in range(6):
        random.Random(seed).shuffle(records)
        time = EpochTime(0, BEGINNING, 0)
        seen.add(tuple(went_on(Firsts(spec).run(Arrived([spec.enter(frame(records), time).rows]), time, MemoryStore()))))
    assert len(seen) == 1
    ((only,),) = seen
    assert only[1] == 5


def test_keys_are_forgotten_an_eighth_of_their_time_after_it_at_the_latest() -> None:
    spec, store, before = spec_of(80), MemoryStore(), BEGINNING
    firsts, most = Firsts(spec), 0
    for number in range(60):
        rows = spec.enter(frame([(f"k{number * 10 + key}", number * 10, 0) for key in range(10)]), EpochTime(0, BEGINNING, 0)).rows
        firsts.run(Arrived([rows]), EpochTime(number, before, number * 10), store)
        before = number * 10
        most = max(most, firsts.size.rows)
    assert most <= 10 * 10
    firsts.run(Arrived(), EpochTime(60, before, END), store)
    assert firsts.size.rows == 0


def test_what_goes_on_is_the_same_when_keys_are_numbers_texts_or_nothing() -> None:
    spec = DedupSpec(("k", "x"), ("k", "x"), None)
    rows = spec.enter(frame([(None, 1, 1), ("a", 2, 1), (None, 3, 1), ("a", 4, 2), ("a", 5, 1)]), EpochTime(0, BEGINNING, 0)).rows
    outcome = Firsts(spec).run(Arrived([rows]), EpochTime(0, BEGINNING, 0), MemoryStore())
    assert went_on(outcome) == [(None, 1, 1), ("a", 2, 1), ("a", 4, 2)]
    assert dict(outcome.counts) == {"taken": 5, "out": 3, "duplicate": 2}
