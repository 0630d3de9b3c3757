"""The latest of results that change, against plain Python."""

from __future__ import annotations

import random

import polars as pl

from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.operators.tables.latest_of_changes import CandidateSpec, LatestOfChanges
from tests.fast.operators.stories import run
from tests.support.examples import seeds

SPEC = CandidateSpec(("k",), ("id",), None)
SCHEMA = {"k": pl.String, "id": pl.Int64, "value": pl.Int64, "_time": pl.Int64, "_op": pl.Int8}
Row = tuple[str | None, int, int, int]


def perform(seed: int) -> None:
    chance = random.Random(seed)
    operator, store = LatestOfChanges(SPEC), MemoryStore()
    holds: dict[int, Row] = {}
    held: dict[str | None, Row] = {}
    for epoch in range(chance.randrange(1, 30)):
        changelog: list[tuple[str | None, int, int, int, int]] = []
        for number in chance.sample(range(8), chance.randrange(5)):
            if number in holds:
                changelog.append((*holds.pop(number), -1))
            if chance.random() < 0.7:
                holds[number] = (chance.choice(["a", "b", None]), number, chance.randrange(100), chance.randrange(6))
                changelog.append((*holds[number], 1))
        inputs = [pl.DataFrame(changelog, schema=SCHEMA, orient="row")] if changelog else []
        for row in [row for part in run(operator, inputs, EpochTime(epoch, 0, 0), store) for row in part.select(*SCHEMA).rows()]:
            if row[-1] > 0:
                assert row[0] not in held, f"seed {seed}: emitted twice without being retracted"
                held[row[0]] = row[:-1]
            else:
                assert held.pop(row[0]) == row[:-1], f"seed {seed}: another record is retracted than was emitted"
        expected: dict[str | None, Row] = {}
        for candidate in sorted(holds.values(), key=lambda row: (row[3], row[1])):
            expected[candidate[0]] = candidate
        assert held == expected, f"seed {seed}, epoch {epoch}"
        if chance.random() < 0.3:
            manifest, operator = operator.manifest(), LatestOfChanges(SPEC)
            operator.restore(manifest, store)


def test_the_latest_live_record_is_emitted() -> None:
    for seed in seeds(15):
        perform(seed)
