"""Count windows against plain Python: whatever the order, batches and restarts, the windows are those of event time."""

from __future__ import annotations

import random

import pytest

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.contract import Arrived
from headrace.operators.event_time.epoch_time import BEGINNING, END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.windows.count_windows import Counts, CountSpec
from tests.fast.operators.stories import AGGREGATES, Record, by_key, frame, story, summary
from tests.support.examples import seeds

Place = tuple[str | None, int]


def wanted(records: list[Record], spec: CountSpec, time: EpochTime) -> dict[Place, tuple[int, int]]:
    """The count of each window that is full and the time of its last record; if the input has ended, of begun ones, not before that."""
    found = {}
    for key, pairs in by_key(records).items():
        ordered = sorted(pairs)
        for number, first in enumerate(range(0, len(ordered), spec.every)):
            inside = ordered[first : first + spec.records]
            if len(inside) == spec.records:
                found[key, number] = (len(inside), inside[-1][0])
            elif time.after == END:
                found[key, number] = (len(inside), max(inside[-1][0], time.before))
    return found


@pytest.mark.parametrize("block", range(3))
def test_windows_hold_a_number_of_records_in_the_order_of_time(block: int) -> None:
    for seed in seeds(5, block):
        chance = random.Random(seed)
        every = chance.choice([1, 2, 3])
        spec = CountSpec(every * chance.choice([1, 1, 2, 3]) + (chance.random() < 0.3), every, ("k",), AGGREGATES)
        told, store, counts = story(seed), MemoryStore(), Counts(spec)
        held: dict[Place, tuple[int, int]] = {}
        accepted: list[Record] = []
        for time, records in [*told.epochs, (told.end, ())]:
            entered = spec.enter(frame(records), time)
            late = [] if entered.late is None else entered.late.select("k", "_time", "x").rows()
            assert sorted(late, key=str) == sorted([record for record in records if record[1] < time.before], key=str)
            accepted += [record for record in records if record[1] >= time.before]
            outcome = counts.run(Arrived([entered.rows] if len(entered.rows) else []), time, store)
            for row in [row for result in outcome.results for row in result.to_dicts()]:
                place = (row["k"], row["window_number"])
                assert row["_op"] > 0
                assert place not in held, f"seed {seed}: {place} is emitted twice"
                held[place] = (row["n"], row["_time"])
            passed = [record for record in accepted if record[1] < time.after]
            assert held == wanted(passed, spec, time), f"seed {seed}, {time}"
            if chance.random() < 0.4:
                manifest, counts = counts.manifest(), Counts(spec)
                counts.restore(manifest, store)
        assert counts.size.rows == 0


def test_records_of_one_time_fall_into_the_same_windows_in_whatever_order_they_come() -> None:
    spec = CountSpec(2, 2, ("k",), AGGREGATES)
    records = [("a", 5, value) for value in range(9)]
    seen = set()
    for seed in range(6):
        random.Random(seed).shuffle(records)
        counts, store = Counts(spec), MemoryStore()
        results = []
        for number, batch in enumerate((records[:4], records[4:])):
            rows = spec.enter(frame(batch), EpochTime(number, BEGINNING, BEGINNING)).rows
            results += counts.run(Arrived([rows]), EpochTime(number, BEGINNING, 0 if number == 0 else END), store).results
        seen.add(tuple(sorted((row["window_number"], row["n"], row["total"]) for result in results for row in result.to_dicts())))
    assert len(seen) == 1
    (windows,) = seen
    assert [count for _, count, _ in windows] == [2, 2, 2, 2, 1]
    assert sum(total for _, _, total in windows) == summary([(5, value) for value in range(9)])[1]


def test_records_of_which_only_the_number_counts_have_places_too() -> None:
    spec = CountSpec(2, 2, ("k",), (EvaluatedCall("count", "n"),))
    counts, store = Counts(spec), MemoryStore()
    rows = spec.enter(frame([("a", time, 0) for time in (3, 1, 1, 2)]).select("k", "_time"), EpochTime(0, BEGINNING, END)).rows
    (windows,) = counts.run(Arrived([rows]), EpochTime(0, BEGINNING, END), store).results
    assert sorted((row["window_number"], row["n"], row["_time"]) for row in windows.to_dicts()) == [(0, 2, 1), (1, 2, 3)]
