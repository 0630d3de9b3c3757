"""The best rows of results that change: a row that leaves makes room for the next one, and what was given out is taken back.

Every row is kept, since any may come forth. The best of each group, some more than are given out, stand in front: all others are behind
the floor of their group. Only when too few are left in front all rows are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import ADD, OP, TIME, added, as_upserts, retracted
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of
from headrace.operators.entry import ALL
from headrace.operators.expiring import ExpiringState
from headrace.operators.memory import Memory
from headrace.operators.store import Store
from headrace.operators.time import EpochTime
from headrace.plan.top import Top

_PLACE, _FLOOR = "_place", "_floor "


@dataclass(frozen=True)
class TopSpec:
    """The `count` rows with the largest `score` in each group; of equal ones those with the smallest `own`, which tells rows apart.

    Rows are final `final` microseconds after their time; None: as long as they are not taken back.
    """

    by: tuple[str, ...]
    own: tuple[str, ...]
    score: str
    per: tuple[str, ...]
    count: int
    columns: tuple[str, ...]
    final: int | None = None

    @property
    def group(self) -> tuple[str, ...]:
        return self.per or (ALL,)

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each row."""
        rows = (records if OP in records.columns else added(records)).with_columns(pl.lit(0, pl.Int32).alias(ALL))
        return Entered(as_upserts(rows.select(*self.columns, ALL, TIME, OP), self.own), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self, shard: int) -> Tops:
        return Tops(self)


class Tops(Memory[ExpiringState]):
    """The rows of one shard, and the best of each group."""

    def __init__(self, spec: TopSpec) -> None:
        self._spec = spec
        self._own, self._group = list(spec.own), list(spec.group)
        super().__init__(ExpiringState("row", spec.own, TIME, None if spec.final is None else spec.final + 1))
        self._kept = 2 * spec.count + 16
        # Made of the state, when it is first needed: the rows in front, and the last of them in groups that have others behind.
        self._front: pl.DataFrame | None = None
        self._floors: pl.DataFrame | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._front = self._floors = None

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        results = self._change(as_upserts(pl.concat(arrived.rows), self._own), store) if arrived.rows else []
        if self._spec.final is not None:
            self._state.forget(time.after, store)
            if self._front is not None:
                self._front = self._front.filter(pl.col(TIME) + self._spec.final >= time.after)
                assert self._floors is not None
                self._floors = self._floors.join(self._front, on=self._group, how="semi", nulls_equal=True)
        return Outcome(results)

    def _change(self, changes: pl.DataFrame, store: Store) -> list[pl.DataFrame]:
        # A row without a score has no place; it is as good as gone.
        holds = (pl.col(OP) == ADD) & pl.col(self._spec.score).is_not_null()
        fresh = changes.filter(holds).drop(OP)
        old = self._state.find(changes.select(self._own))
        front, floors = self._in_front(fresh)
        touched = fresh.select(self._group) if old is None else pl.concat([fresh.select(self._group), old.select(self._group)])
        touched = touched.unique()
        gone = changes.filter(~holds).drop(OP) if old is not None else changes.clear().drop(OP)
        self._state.change(fresh, gone, store)
        mine = front.join(touched, on=self._group, how="semi", nulls_equal=True)
        before = self._placed(mine).filter(pl.col(_PLACE) < self._spec.count).drop(_PLACE)
        stayed = mine.join(changes, on=self._own, how="anti", nulls_equal=True)
        rows, floors = self._refilled(pl.concat([stayed, self._above(fresh, floors)]), touched, floors)
        now = self._placed(rows)
        self._cut(now, front.join(touched, on=self._group, how="anti", nulls_equal=True), floors)
        after = now.filter(pl.col(_PLACE) < self._spec.count).drop(_PLACE)
        return self._given_out(before, after, changes)

    def _in_front(self, like: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        if self._front is None or self._floors is None:
            rows = self._state.where(pl.lit(True))
            nothing = like.clear()
            self._front = nothing
            self._floors = nothing.select(*self._group, *(pl.col(name).alias(f"{_FLOOR}{name}") for name in self._order))
            if rows is not None:
                self._cut(self._placed(rows.select(like.columns)), nothing, self._floors)
        return self._front, self._floors

    @property
    def _order(self) -> list[str]:
        return [self._spec.score, *(name for name in self._own if name != self._spec.score)]

    def _above(self, rows: pl.DataFrame, floors: pl.DataFrame) -> pl.DataFrame:
        """The rows that are not behind the floor of their group."""
        if floors.is_empty():
            return rows
        score, *own = self._order
        # From the last column to the first: a row is above if it is so in a column, or equal there and above in the next ones.
        above = pl.lit(True)
        for name in reversed(own):
            mine, floor = pl.col(name), pl.col(f"{_FLOOR}{name}")
            smaller = (mine < floor).fill_null(mine.is_null() & floor.is_not_null())
            above = smaller | (mine.eq_missing(floor) & above)
        mine, floor = pl.col(score), pl.col(f"{_FLOOR}{score}")
        above = floor.is_null() | (mine > floor) | ((mine == floor) & above)
        joined = rows.join(floors, on=self._group, how="left", nulls_equal=True, coalesce=True)
        return joined.filter(above).select(rows.columns)

    def _refilled(self, rows: pl.DataFrame, touched: pl.DataFrame, floors: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows in front, and all rows of the groups that have too few there and others behind; these have no floor any more."""
        behind = touched.join(floors, on=self._group, how="semi", nulls_equal=True)
        if behind.is_empty():
            return rows, floors
        counts = rows.group_by(self._group).agg(pl.len().alias("_rows"))
        short = behind.join(counts, on=self._group, how="left", nulls_equal=True)
        short = short.filter(pl.col("_rows").fill_null(0) < self._spec.count).select(self._group)
        everything = None if short.is_empty() else self._state.where(pl.lit(True))
        if not short.is_empty():
            floors = floors.join(short, on=self._group, how="anti", nulls_equal=True)
        if everything is None:
            return rows, floors
        whole = everything.select(rows.columns).join(short, on=self._group, how="semi", nulls_equal=True)
        return pl.concat([rows.join(short, on=self._group, how="anti", nulls_equal=True), whole]), floors

    def _placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows in their order, numbered in their group."""
        order = self._order
        ordered = rows.sort(order, descending=[True] + [False] * (len(order) - 1), nulls_last=False)
        return ordered.with_columns(pl.int_range(pl.len()).over(self._group).cast(pl.Int64).alias(_PLACE))

    def _cut(self, placed: pl.DataFrame, others: pl.DataFrame, floors: pl.DataFrame) -> None:
        """Let no more stand in front than are worth it, and remember where the others begin."""
        long = placed.filter(pl.col(_PLACE) == 2 * self._kept).select(self._group)
        is_long = placed.join(long, on=self._group, how="semi", nulls_equal=True)
        cut = is_long.filter(pl.col(_PLACE) < self._kept)
        lowest = cut.filter(pl.col(_PLACE) == self._kept - 1)
        fresh = lowest.select(*self._group, *(pl.col(name).alias(f"{_FLOOR}{name}") for name in self._order))
        short = placed.join(long, on=self._group, how="anti", nulls_equal=True)
        self._front = pl.concat([others, short.drop(_PLACE), cut.drop(_PLACE)])
        self._floors = pl.concat([floors.join(long, on=self._group, how="anti", nulls_equal=True), fresh])

    def _given_out(self, before: pl.DataFrame, after: pl.DataFrame, changes: pl.DataFrame) -> list[pl.DataFrame]:
        same = before.join(after, on=self._own, how="semi", nulls_equal=True).join(changes, on=self._own, how="anti", nulls_equal=True)
        gone = before.join(same, on=self._own, how="anti", nulls_equal=True)
        come = after.join(same, on=self._own, how="anti", nulls_equal=True)
        return [said.drop(ALL) for said in (retracted(gone), added(come)) if said.height]


@operator_of.register
def _(node: Top) -> Made:
    own, columns = node.input.keys, tuple(node.columns.names)
    # Rows of one key must meet, those of one group need not: what they have in common spreads nothing.
    by = (tuple(name for name in own if name not in node.per) or own) if node.shared else node.per or (ALL,)
    final = microseconds(node.lateness) if node.closes else None
    return Made(TopSpec(by, own, node.score, node.per, node.count, columns, final))
