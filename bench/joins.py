"""Joins: two streams within a time against Spark's own stream-stream join, and the other joins, which Spark does not have, alone.

The results of both sides are compared: same Spark, same topics, same rows an epoch. An epoch's time is Spark's own
measure of it (triggerExecution); the first ones do not count. The other joins are one shard on one core, without Spark.

usage: python bench/joins.py [--quick]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from _comparison import Comparison, Targets, perform
from _harness import Measure, at_least, interleave, options
from _join_operators import Joins
from _payments import START, append, payments
from _runs import Run

from headrace.api.stream import Stream

_CARDS = 100_000
_SKIP = 2


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    pairs: int
    rows: int
    epochs: int
    times: int


FULL = Size(pairs=3, rows=200_000, epochs=10, times=100)
QUICK = Size(pairs=1, rows=25_000, epochs=5, times=30)


def near(left: Stream, right: Stream) -> Stream:
    return left.join_within(right, on="card", within="30 seconds")


class JoinBench(Comparison[Size]):
    """Each measure of a join."""

    def interval(self, name: str) -> Measure:
        size, measure = self.size, Measure(name, "rows/s")
        for topic, seed in (("orders", 1), ("clicks", 2)):
            append(self.log, topic, iter([_payments(size.rows * size.epochs, seed)]))

        def ours() -> Run:
            run = self.ours.facts_of(("orders", "clicks"), near, 2 * size.rows)
            measure.ours.append(run.rate(_SKIP))
            measure.note_most("headrace_state_megabytes", run.state_megabytes)
            return run

        def peer() -> Run:
            run = self.peer.near("orders", "clicks", size.rows, "30 seconds")
            measure.peer.append(run.rate(_SKIP))
            measure.note_most("spark_state_megabytes", run.state_megabytes)
            return run

        self._same(name, ours().result, peer().result)
        interleave(size.pairs - 1, ours, peer)
        return self._shown(measure)

    def alone(self) -> Targets:
        """The joins that Spark does not have, on one core."""
        joins, size = Joins(), self.size
        figures = {
            "as of, rows/s": {"got": joins.as_of(size.rows, size.epochs, size.rows // 20, 10_000), "at_least": 300_000},
            "stream with a table of 1,000,000 rows, rows/s": {"got": joins.lookup(size.rows, size.epochs, 1_000_000), "at_least": 500_000},
        }
        few, many = joins.update(10_000, 1_000, size.times), joins.update(1_000_000, 100_000, size.times)
        figures["update of one row, 1,000,000 x 100,000 rows against 10,000 x 1,000, cost"] = {"got": many / few, "at_most": 5}
        most, after = joins.kept(size.rows, size.epochs)
        figures["rows kept within a minute, and when all has expired"] = {"most": most.rows, "got": after.rows, "at_most": 0}
        self.figures["update_milliseconds"] = {"few": 1_000 * few, "many": 1_000 * many}
        for name, figure in figures.items():
            print(f"{name:<90} {figure}", flush=True)
        return {name: {key: float(f"{value:.4g}") for key, value in figure.items()} for name, figure in figures.items()}

    def _same(self, name: str, ours: pl.DataFrame, peer: pl.DataFrame) -> None:
        columns = ["card", "at", "at_right", "amount", "amount_right"]
        left, right = (frame.select(columns).sort(columns) for frame in (ours, peer))
        self._claim(left.height > 0 and left.equals(right), f"{name}: {left.height:,} and {right.height:,} pairs are equal")


def _payments(rows: int, seed: int) -> pa.Table:
    """A payment every millisecond, up to five seconds late, of cards that are equally busy."""
    random = np.random.default_rng(seed)
    at = START + np.arange(rows) * 1_000 - random.integers(0, 5_000_000, rows)
    return payments(random.integers(0, _CARDS, rows), random.integers(1, 4_000, rows), np.maximum(START, at))


def measured(bench: JoinBench, home: Path) -> Targets:
    """Every figure that has a target."""
    streams = bench.interval("two streams within 30 seconds, against Spark's own join")
    return {streams.name: at_least(streams, 2), **bench.alone()}


if __name__ == "__main__":
    perform("joins", JoinBench, QUICK if options(__doc__ or "").quick else FULL, measured)
