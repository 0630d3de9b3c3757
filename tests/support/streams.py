"""Random streams of records, and the many ways in which the same records may arrive."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = "key string, value int, tag string, at timestamp"
Row = dict[str, Any]


@dataclass(frozen=True)
class Arrival:
    """How records come: batch by batch, over how many partitions and shards, and after which batches the engine crashes."""

    batches: tuple[tuple[Row, ...], ...]
    partitions: int
    shards: int
    crashes: frozenset[int]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


@st.composite
def records(draw: st.DrawFn, least: int = 0, most: int = 40) -> list[Row]:
    """Records of a few keys, one of them hot and one null, with bursts and gaps in time."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    rows, second = [], 0
    for _ in range(draw(st.integers(least, most))):
        second += chance.choice([0, 0, 1, 1, 2, 3, 7, 40] if chance.random() < 0.9 else [120])
        key = chance.choice(["hot", "hot", "hot", "hot", "cold", "rare", None])
        value = chance.choice([None, *range(-5, 20)])
        rows.append({"key": key, "value": value, "tag": chance.choice(["x", "y", None]), "at": at(second)})
    return rows


@st.composite
def arrivals(draw: st.DrawFn, rows: Sequence[Row], disorder: float) -> Arrival:
    """An order in which no record comes after one that is more than `disorder` seconds younger; batches, partitions, crashes."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    ordered = sorted(rows, key=lambda row: (row["at"] + timedelta(seconds=chance.uniform(0, disorder)), chance.random()))
    cuts = sorted(chance.sample(range(len(rows) + 1), min(len(rows), draw(st.integers(0, 6)))))
    batches = tuple(tuple(ordered[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True))
    crashes = frozenset(number for number in range(len(batches)) if chance.random() < 0.3)
    return Arrival(batches, draw(st.integers(1, 3)), draw(st.integers(1, 2)), crashes)
