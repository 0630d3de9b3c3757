"""Random streams for operators, and what plain Python makes of them."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.contract import Arrived, Outcome, Spec, Stateful
from headrace.operators.event_time.epoch_time import BEGINNING, EpochTime
from headrace.operators.state.store import Store

Record = tuple[str | None, int, int]

AGGREGATES = (
    EvaluatedCall("count", "n"),
    EvaluatedCall("sum", "total", ("x",), kind=pl.Int64()),
    EvaluatedCall("max", "top", ("x",), kind=pl.Int64()),
    EvaluatedCall("last", "latest", ("x",)),
)
CHANGING = (EvaluatedCall("count", "n", signed=True), EvaluatedCall("sum", "total", ("x",), kind=pl.Int64(), signed=True))


@dataclass(frozen=True)
class Story:
    """Epochs of records (key, time, value), out of order and some of them late, each with its time."""

    epochs: tuple[tuple[EpochTime, tuple[Record, ...]], ...]

    @property
    def end(self) -> EpochTime:
        last = self.epochs[-1][0]
        return EpochTime(last.epoch + 1, last.after, 2**62)


def story(seed: int) -> Story:
    chance = random.Random(seed)
    epochs = []
    before, latest = BEGINNING, None
    for number in range(chance.randrange(1, 12)):
        records = tuple(
            (chance.choice("abc") if chance.random() > 0.1 else None, number * 6 + chance.randrange(-25, 25), chance.randrange(100))
            for _ in range(chance.randrange(12))
        )
        latest = max([time for _, time, _ in records] + ([latest] if latest is not None else []), default=None)
        after = before if latest is None or chance.random() < 0.1 else max(before, latest - 8)
        epochs.append((EpochTime(number, before, after), records))
        before = after
    return Story(tuple(epochs))


def frame(records: tuple[Record, ...] | list[Record]) -> pl.DataFrame:
    return pl.DataFrame(list(records), schema={"k": pl.String, "_time": pl.Int64, "x": pl.Int64}, orient="row")


def changelog(records: list[tuple[str | None, int, int, int]]) -> pl.DataFrame:
    """Records (key, time, value, operation), of which some take others back."""
    return pl.DataFrame(records, schema={"k": pl.String, "_time": pl.Int64, "x": pl.Int64, "_op": pl.Int8}, orient="row")


def summary(records: list[tuple[int, int]]) -> tuple[int, int, int, int]:
    """What AGGREGATES make of (time, value) pairs."""
    values = [value for _, value in records]
    return len(values), sum(values), max(values), max(records)[1]


def by_key(records: list[Record]) -> dict[str | None, list[tuple[int, int]]]:
    groups: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    for key, time, value in records:
        groups[key].append((time, value))
    return groups


def entered(spec: Spec, records: pl.DataFrame) -> pl.DataFrame:
    """What crosses the shuffle of records that are judged already."""
    return spec.enter(records, EpochTime(0, BEGINNING, BEGINNING)).rows


def run(state: Stateful, rows: list[pl.DataFrame], time: EpochTime, store: Store) -> list[pl.DataFrame]:
    """What a shard emits in an epoch to which nothing doubtful came."""
    outcome: Outcome = state.run(Arrived(rows), time, store)
    assert outcome.late is None
    return list(outcome.results)
