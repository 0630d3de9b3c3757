"""Sliding windows against plain Python, under disorder, lateness, corrections, splits and restarts."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.contract import Arrived
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.windows.sliding import Slides, SlidingSpec
from tests.fast.operators.stories import AGGREGATES, Record, entered, frame, run, story, summary
from tests.support.examples import seeds

Place = tuple[str | None, int]


class Oracle:
    """The window of each time of a key that the watermark has passed: as it was when it was last open."""

    def __init__(self, length: int, until: int) -> None:
        self._length, self._until = length, until
        self._records: list[Record] = []
        self.windows: dict[Place, tuple[int, ...]] = {}

    def epoch(self, records: tuple[Record, ...], time: EpochTime) -> list[Record]:
        """Take in records; gives those that are late because every window that could hold them is closed."""
        closed = time.before - self._until
        late = [record for record in records if record[1] + self._length < closed]
        self._records += [record for record in records if record not in late]
        for key, at, _ in self._records:
            if closed <= at < time.after and ((key, at) in self.windows or at >= time.before or (key, at) in {r[:2] for r in records}):
                inside = [(moment, value) for other, moment, value in self._records if other == key and at - self._length <= moment <= at]
                self.windows[key, at] = summary(inside)
        return late


@pytest.mark.parametrize("aggregates", [AGGREGATES, AGGREGATES[:2]], ids=["all", "those that add up"])
@pytest.mark.parametrize("block", range(3))
def test_each_event_has_the_events_of_its_key_before_it(block: int, aggregates: tuple[EvaluatedCall, ...]) -> None:
    names = [aggregate.name for aggregate in aggregates]
    for seed in seeds(5, block):
        chance = random.Random(seed)
        spec = SlidingSpec(chance.choice([1, 5, 30]), ("k",), aggregates, until=chance.choice([0, 10, 40]))
        told, store, slides = story(seed), MemoryStore(), Slides(spec)
        held: dict[Place, tuple[tuple[int, ...], str, int]] = {}
        oracle = Oracle(spec.length, spec.until)
        for time, records in [*told.epochs, (told.end, ())]:
            cut = chance.randrange(len(records) + 1)
            parts = [spec.enter(frame(part), time) for part in (records[:cut], records[cut:]) if part]
            late = [row for part in parts if part.late is not None for row in part.late.select("k", "_time", "x").rows()]
            assert sorted(late, key=str) == sorted(oracle.epoch(records, time), key=str), f"seed {seed}: late"
            outcome = slides.run(Arrived([part.rows for part in parts if len(part.rows)]), time, store)
            for row in [row for result in outcome.results for row in result.to_dicts()]:
                place = (row["k"], row["_time"])
                said = (tuple(row[name] for name in names), row["pane"], row["revision"])
                if row["_op"] > 0:
                    assert place not in held, f"seed {seed}: {place} is emitted twice without being retracted"
                    held[place] = said
                else:
                    assert held.pop(place) == said, f"seed {seed}: {place} is retracted with something else than was emitted"
            assert {place: said[0] for place, said in held.items()} == {
                place: value[: len(names)] for place, value in oracle.windows.items()
            }, f"seed {seed}, {time}"
            if chance.random() < 0.4:
                manifest, slides = slides.manifest(), Slides(spec)
                slides.restore(manifest, store)
        assert slides.size.rows == 0, f"seed {seed}: every window is past correction, yet state is left"


def test_a_late_event_corrects_only_the_windows_it_is_in() -> None:
    spec, store = SlidingSpec(10, ("k",), AGGREGATES, until=100), MemoryStore()
    slides = Slides(spec)
    run(slides, [entered(spec, frame([("a", 0, 1), ("a", 12, 2), ("a", 30, 3), ("b", 12, 4)]))], EpochTime(1, BEGINNING, 40), store)
    results = pl.concat(run(slides, [entered(spec, frame([("a", 5, 7)]))], EpochTime(2, 40, 41), store))
    assert results.select("k", "_time", "n", "pane", "revision", "_op").sort("_time", "_op").rows() == [
        ("a", 5, 2, "late", 0, 1),
        ("a", 12, 1, "on-time", 0, -1),
        ("a", 12, 2, "late", 1, 1),
    ]


def test_floats_that_add_up_exactly_and_those_that_do_not_leave_no_trace_when_they_are_gone() -> None:
    kind = pl.Float64()
    aggregates = (EvaluatedCall("count", "n"), EvaluatedCall("sum", "total", ("x",), kind=kind))
    spec, store, chance = SlidingSpec(20, ("k",), aggregates, until=15), MemoryStore(), random.Random(5)
    slides, held, sent = Slides(spec), dict[Place, tuple[int, float]](), list[tuple[str, int, float]]()
    for number in range(40):
        before = BEGINNING if not number else number * 4 - 8
        odd = number in (5, 6, 20)
        values = [chance.choice([0.1, 3.7, -2.5, *([1e-13, 1e300, math.nan, math.inf] if odd else [])]) for _ in range(4)]
        records = [(chance.choice("ab"), max(0, number * 4 - chance.randrange(12)), value) for value in values]
        rows = pl.DataFrame(records, schema={"k": pl.String, "_time": pl.Int64, "x": pl.Float64}, orient="row")
        time = EpochTime(number, before, (number + 1) * 4 - 8)
        sent += records
        outcome = slides.run(Arrived([spec.enter(rows, time).rows]), time, store)
        for row in [row for result in outcome.results for row in result.to_dicts()]:
            if row["_op"] > 0:
                held[row["k"], row["_time"]] = row["n"], row["total"]
            else:
                del held[row["k"], row["_time"]]
        if number % 7 == 3:
            manifest, slides = slides.manifest(), Slides(spec)
            slides.restore(manifest, store)
    for (key, time_of), (count, total) in held.items():
        inside = [value for other, at, value in sent if other == key and time_of - 20 <= at <= time_of]
        assert count == len(inside)
        assert total == pytest.approx(sum(inside), nan_ok=True)
        if all(1e-12 < abs(value) < 5 for value in inside):
            assert total == math.fsum(inside)
    assert len(held) > 30
