"""The best rows of results that change: a row that leaves makes room for the next one, and what was given out is taken back.

The best of each group, some more than are given out, stand in front. Only when too few are left there all rows are looked at, since any
may come forth: those that the operator keeps itself, or those of the table that it stands right behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import ADD, OP, TIME, added, as_upserts
from headrace.operators.contract import Arrived, Entered, Made, Outcome, Stateful, operator_of
from headrace.operators.entry import ALL
from headrace.operators.expiring import ExpiringState
from headrace.operators.front import Front, Order, groups_of_rows
from headrace.operators.keyed import GONE, KeyedState
from headrace.operators.memory import Memory
from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.plan.top import Top


@dataclass(frozen=True)
class TopSpec:
    """The `count` rows with the largest `score` in each group; of equal ones those with the smallest `own`, which tells rows apart.

    Rows are final `final` microseconds after their time; None: as long as they are not taken back. `beside`: the table before it has
    all rows at hand.
    """

    by: tuple[str, ...]
    own: tuple[str, ...]
    score: str
    per: tuple[str, ...]
    count: int
    columns: tuple[str, ...]
    final: int | None = None
    beside: bool = False

    @property
    def group(self) -> tuple[str, ...]:
        return self.per or (ALL,)

    @property
    def order(self) -> Order:
        return Order(self.own, self.score, self.group, self.count)

    @property
    def kept(self) -> list[str]:
        return [*self.columns, ALL, TIME]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each row."""
        rows = (records if OP in records.columns else added(records)).with_columns(pl.lit(0, pl.Int32).alias(ALL))
        return Entered(as_upserts(rows.select(*self.kept, OP), self.own), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Stateful:
        return TopsBeside(self) if self.beside else Tops(self)

    def holding(self) -> pl.Expr:
        """Which changes leave a row that has a place: one without a score is as good as gone."""
        return (pl.col(OP) == ADD) & pl.col(self.score).is_not_null()


class Tops(Memory[ExpiringState]):
    """The rows of one shard, and the best of each group."""

    def __init__(self, spec: TopSpec) -> None:
        self._spec = spec
        self._own, self._group = list(spec.own), list(spec.group)
        super().__init__(ExpiringState("row", spec.own, TIME, None if spec.final is None else spec.final + 1))
        # Made of the state, when it is first needed.
        self._front: Front | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._front = None

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        results = self._change(as_upserts(pl.concat(arrived.rows), self._own), store) if arrived.rows else []
        if self._spec.final is not None:
            self._state.forget(time.after, store)
            if self._front is not None:
                self._front.forget(pl.col(TIME) + self._spec.final < time.after)
        return Outcome(results)

    def _change(self, changes: pl.DataFrame, store: Store) -> list[pl.DataFrame]:
        holds = self._spec.holding()
        fresh = changes.filter(holds).drop(OP)
        old = self._state.find(changes.select(self._own))
        front = self._in_front(fresh)
        touched = groups_of_rows([fresh] if old is None else [fresh, old], self._group)
        gone = changes.filter(~holds).drop(OP) if old is not None else changes.clear().drop(OP)
        self._state.change(fresh, gone, store)
        return front.change(front.above(fresh), changes, touched, self._everything)

    def _in_front(self, like: pl.DataFrame) -> Front:
        if self._front is None:
            rows = self._everything()
            self._front = Front(self._spec.order, like.clear() if rows is None else rows.select(like.columns))
        return self._front

    def _everything(self) -> pl.DataFrame | None:
        return self._state.where(pl.lit(True))


class TopsBeside(Memory[KeyedState]):
    """The best rows of one shard of a table that stands right before it. Only those in front are kept here."""

    def __init__(self, spec: TopSpec) -> None:
        self._spec = spec
        self._own, self._group = list(spec.own), list(spec.group)
        super().__init__(KeyedState("row", spec.own))
        self._front: Front | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._front = None

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome()
        changes = arrived.rows[0] if len(arrived.rows) == 1 else as_upserts(pl.concat(arrived.rows), self._own)
        fresh = changes.filter(self._spec.holding()).drop(OP)
        front = self._in_front(fresh)
        near, leaving = front.above(fresh), front.of(changes)
        if near.is_empty() and leaving.is_empty():
            return Outcome(counts=_behind(changes.height))
        keys = pl.concat([near.select(self._own), leaving.select(self._own)]).unique()

        def everything() -> pl.DataFrame | None:
            rows = arrived.table() if arrived.table is not None else None
            return None if rows is None else self._spec.enter(rows, time).rows.filter(self._spec.holding())

        before = front.rows
        results = front.change(near, keys, groups_of_rows([near, leaving], self._group), everything)
        self._keep(before, front.rows, keys, store)
        return Outcome(results, counts=_behind(changes.height - keys.height))

    def _keep(self, before: pl.DataFrame, after: pl.DataFrame, keys: pl.DataFrame, store: Store) -> None:
        """Write what has come to the front or is another row now, and marks for what has left it."""
        stayed = before.join(keys, on=self._own, how="anti", nulls_equal=True)
        come = after.join(stayed, on=self._own, how="anti", nulls_equal=True).with_columns(pl.lit(False).alias(GONE))
        gone = before.join(after, on=self._own, how="anti", nulls_equal=True).with_columns(pl.lit(True).alias(GONE))
        self._state.put(pl.concat([come, gone]), store)

    def _in_front(self, like: pl.DataFrame) -> Front:
        if self._front is None:
            rows = self._state.where(pl.lit(True))
            self._front = Front.found_again(self._spec.order, like.clear() if rows is None else rows.select(like.columns))
        return self._front


def _behind(rows: int) -> dict[str, int]:
    """What the accounting says of rows that are not kept, since those of their group that are in front are better."""
    return {"out": -rows, "filtered": rows} if rows else {}


@operator_of.register
def _(node: Top) -> Made:
    own, columns, beside = node.input.keys, tuple(node.columns.names), bool(node.beside)
    # Rows of one key must meet, those of one group need not: what they have in common spreads nothing.
    by = (tuple(name for name in own if name not in node.per) or own) if node.shared and not beside else node.per or (ALL,)
    final = microseconds(node.lateness) if node.closes else None
    return Made(TopSpec(own if beside else by, own, node.score, node.per, node.count, columns, final, beside))
