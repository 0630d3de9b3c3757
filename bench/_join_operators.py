"""Joins alone, without Spark: one shard of an operator on one core, records through its entrances, state in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.operators import kinds  # noqa: F401 - each kind registers its operator
from headrace.operators.changes import TIME, added
from headrace.operators.contract import Arrived, Size, operator_of
from headrace.operators.event_time.epoch_time import END, EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.plan.nodes import Node

_SECOND = 1_000_000


class Shard:
    """One shard of a join at work."""

    def __init__(self, node: Node) -> None:
        self._made = operator_of(node)
        self._state, self._store = self._made.spec.fresh(), MemoryStore()
        self._epoch, self._watermark = 0, 0

    @property
    def size(self) -> Size:
        return self._state.size

    def run(self, came: Mapping[str, pl.DataFrame], watermark: int) -> tuple[float, int]:
        """One epoch: the seconds of this core that it takes, and the rows that it emits."""
        moment = EpochTime(self._epoch, self._watermark, watermark)
        self._epoch, self._watermark = self._epoch + 1, watermark
        began = time.process_time()
        rows = {port: [self._made.ports[port].entrance.enter(frame, moment).rows] for port, frame in came.items()}
        outcome = self._state.run(Arrived(ports=rows), moment, self._store)
        return time.process_time() - began, sum(part.height for part in outcome.results)


class Joins:
    """The joins that are measured, over two streams with numbers as keys."""

    def __init__(self) -> None:
        app = Declaration("joins")
        watermark = hr.bounded("10 seconds", idle="1 hour")
        self._left: Stream = app.stream("left", "id bigint, k bigint, v double, at timestamp", time="at", watermark=watermark)
        self._right: Stream = app.stream("right", "rid bigint, k bigint, w double, at timestamp", time="at", watermark=watermark)
        self._random = np.random.default_rng(7)

    def as_of(self, rows: int, epochs: int, versions: int, keys: int) -> float:
        """Records per second with their versions, `versions` new ones an epoch."""
        shard = Shard(self._left.join(self._right.to_table("k").as_of("at", history="1 hour"), on="k").node)
        return self._rate(
            shard, ((rows, self._rows("id", "v", rows, keys, n), self._rows("rid", "w", versions, keys, n)) for n in range(epochs))
        )

    def lookup(self, rows: int, epochs: int, table: int) -> float:
        """Records per second with the rows of a table of this many."""
        shard = Shard(self._left.join(self._right.to_table("k"), on="k").node)
        shard.run({"right": added(self._table("rid", "w", table))}, 0)
        return self._rate(shard, ((rows, self._rows("id", "v", rows, table, number), None) for number in range(epochs)))

    def update(self, orders: int, products: int, times: int) -> float:
        """Seconds to change the price of one product, which ten orders have."""
        shard = Shard(self._left.to_table("id").join(self._right.to_table("k"), on="k", ttl=None).node)
        prices = self._table("rid", "w", products)
        bought = self._table("id", "v", orders).with_columns(pl.col("k") % products)
        shard.run({"left": added(bought), "right": added(prices)}, 0)
        spent = [shard.run({"right": added(prices[n : n + 1].with_columns(pl.col("w") + 1))}, 0) for n in range(times)]
        assert {emitted for _, emitted in spent} == {2 * orders // products}
        # The first change sorts what was written.
        return float(np.median([seconds for seconds, _ in spent[1:]]))

    def kept(self, rows: int, epochs: int) -> tuple[Size, Size]:
        """What an interval join keeps at most, and when the input has ended."""
        shard = Shard(self._left.join_within(self._right, on="k", within="30 seconds").node)
        most = Size()
        for number in range(epochs):
            both = {"left": self._rows("id", "v", rows, rows, number), "right": self._rows("rid", "w", rows, rows, number)}
            shard.run(both, number * 10 * _SECOND)
            most = max(most, shard.size)
        shard.run({}, END)
        return most, shard.size

    def _rate(self, shard: Shard, epochs: Iterable[tuple[int, pl.DataFrame, pl.DataFrame | None]]) -> float:
        taken, spent = 0, 0.0
        for number, (rows, left, right) in enumerate(epochs):
            seconds, _ = shard.run({"left": left} if right is None else {"left": left, "right": right}, number * 10 * _SECOND)
            taken, spent = taken + rows, spent + seconds
        return taken / spent

    def _rows(self, number: str, value: str, rows: int, keys: int, epoch: int) -> pl.DataFrame:
        """Records of ten seconds, in no order."""
        times = (epoch * 10 * _SECOND + self._random.integers(0, 10 * _SECOND, rows)).astype(np.int64)
        keyed = self._random.integers(0, keys, rows)
        return _frame({number: np.arange(rows) + epoch * rows, "k": keyed, value: self._random.random(rows)}, times)

    def _table(self, number: str, value: str, rows: int) -> pl.DataFrame:
        return _frame({number: np.arange(rows), "k": np.arange(rows), value: self._random.random(rows)}, np.zeros(rows, np.int64))


def _frame(columns: Mapping[str, np.ndarray], times: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({**columns, "at": pl.Series(times).cast(pl.Datetime("us", "UTC")), TIME: times})
