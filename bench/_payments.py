"""Card payments in a topic of the log: what the benchmarks of the engine read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.log import Log

COLUMNS = "card string, amount double, at timestamp"
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
PARTITIONS = 4
_EACH = 200_000
_SEED = 20260101
_SKEW = 1.3


@dataclass(frozen=True)
class Payments:
    """`rows` payments, one every `spacing` microseconds, each up to five seconds late and some cards far busier than others.

    Amounts are quarters, so that their sums are exact in whatever order they are added.
    """

    rows: int
    spacing: int = 1_000
    cards: int = 100_000
    begin: int = START

    @property
    def end(self) -> int:
        return self.begin + self.rows * self.spacing

    def tables(self) -> Iterator[pa.Table]:
        random = np.random.default_rng(_SEED)
        for first in range(0, self.rows, _EACH):
            count = min(_EACH, self.rows - first)
            late = random.integers(0, min(5_000_000, self.spacing * _EACH), count)
            at = np.maximum(self.begin, self.begin + (first + np.arange(count)) * self.spacing - late)
            yield payments(random.zipf(_SKEW, count) % self.cards, random.integers(1, 4_000, count), at)


def payments(cards: np.ndarray, quarters: np.ndarray, at: np.ndarray) -> pa.Table:
    """Payments by their columns."""
    return pa.table({"card": pa.array(cards).cast(pa.string()), "amount": quarters / 4, "at": pa.array(at, TIMESTAMP)})


def append(log: Log, topic: str, tables: Iterator[pa.Table]) -> None:
    """Append payments to a topic, which is made if it isn't there; each card has its partition."""
    log.create_topic(topic, partitions=PARTITIONS, schema=COLUMNS, key="card", time="at", exist_ok=True)
    with log.producer(acks="1") as producer:
        for table in tables:
            producer.send_table(topic, table)
    os.sync()  # what is left to be written must not be paid by the first run
