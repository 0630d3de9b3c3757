"""The best rows of results that change: a row that leaves makes room for the next one, and is retracted.

The best of each group, and some more than are emitted, are in the cache. Only when too few are left there are all rows searched, since any
may take their place: those that the operator keeps itself, or those of the table directly before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import ADD, OP, TIME, added, as_upserts
from headrace.operators.columns import ALL
from headrace.operators.contract import Arrived, Entered, Exported, Made, Outcome, Stateful, operator_of, single, without_result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.expiring import ExpiringState
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import SeveralStates
from headrace.operators.state.store import Store
from headrace.operators.tables.moved_top import EMITTED, Emitted
from headrace.operators.tables.top_cache import Order, TopCache, groups_of_rows
from headrace.plan.tables.top import Top


@dataclass(frozen=True)
class TopSpec:
    """The `count` rows with the largest `score` in each group; among equal ones those with the smallest `row_key`, which identifies rows.

    Rows are final `final` microseconds after their time; None: until they are retracted. `colocated`: the table before it is co-located and
    has all rows.
    """

    by: tuple[str, ...]
    row_key: tuple[str, ...]
    score: str
    per: tuple[str, ...]
    count: int
    columns: tuple[str, ...]
    final: int | None = None
    colocated: bool = False
    rank: str = ""
    shared: bool = False
    """Whether a group has rows on several shards, of which each emits its best."""

    @property
    def group(self) -> tuple[str, ...]:
        return self.per or (ALL,)

    @property
    def order(self) -> Order:
        return Order(self.row_key, self.score, self.group, self.count, self.rank)

    @property
    def kept(self) -> list[str]:
        return [*self.columns, ALL, TIME]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each row, on each shard: the shard of the group that a row leaves must be told, too."""
        rows = (records if OP in records.columns else added(records)).with_columns_seq(pl.lit(0, pl.Int32).alias(ALL))
        return Entered(as_upserts(rows.select_seq(*self.kept, OP), list(dict.fromkeys((*self.row_key, *self.by)))), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Stateful:
        return ColocatedTops(self) if self.colocated else Tops(self)

    def holding(self) -> pl.Expr:
        """Which changes leave a row that has a place: one without a score counts as removed."""
        return (pl.col(OP) == ADD) & pl.col(self.score).is_not_null()

    def expired(self, moment: int) -> pl.Expr:
        """Which rows are final at a moment, and no longer kept."""
        return pl.lit(False) if self.final is None else pl.col(TIME) + self.final < moment


class Tops(SeveralStates):
    """The rows of one shard, and the best of each group."""

    def __init__(self, spec: TopSpec) -> None:
        self._spec = spec
        self._row_key, self._group = list(spec.row_key), list(spec.group)
        self._state = ExpiringState("row", spec.row_key, TIME, None if spec.final is None else spec.final + 1)
        self._emitted = Emitted(spec.row_key)
        super().__init__(self._state, self._emitted)
        # Computed from the state, when it is first needed.
        self._cache: TopCache | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._cache = None

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        results = []
        if self._emitted.pending:
            best = self._best() if self._spec.shared else self._emitted.rows
            results += self._emitted.settled(best, None, self._spec.expired(time.before), store)
        if arrived.rows:
            results += self._change(as_upserts(pl.concat(arrived.rows), self._row_key), store)
        if self._spec.final is not None:
            self._state.forget(time.after, store)
            if self._cache is not None:
                self._cache.forget(self._spec.expired(time.after))
        return Outcome(results)

    def export(self) -> Exported:
        kept = super().export()
        best = self._best() if self._spec.shared and not self._emitted.pending else None
        return kept if best is None else replace(kept, frames={**kept.frames, EMITTED: best})

    def table(self) -> pl.DataFrame | None:
        """The best rows, as they were emitted."""
        best = self._best()
        return None if best is None else added(best.drop(ALL))

    def _best(self) -> pl.DataFrame | None:
        rows = self._everything()
        return None if rows is None else self._cached(rows).best

    def _change(self, changes: pl.DataFrame, store: Store) -> list[pl.DataFrame]:
        holds = self._spec.holding()
        fresh = changes.filter(holds).drop(OP)
        old = self._state.find(changes.select_seq(self._row_key))
        cache = self._cached(fresh)
        touched = groups_of_rows([fresh] if old is None else [fresh, old], self._group)
        gone = changes.filter(~holds).drop(OP) if old is not None else changes.clear().drop(OP)
        self._state.change(fresh, gone, store)
        return cache.change(cache.above(fresh), changes, touched, self._everything)

    def _cached(self, like: pl.DataFrame) -> TopCache:
        if self._cache is None:
            rows = self._everything()
            self._cache = TopCache(self._spec.order, like.clear() if rows is None else rows.select_seq(like.columns))
        return self._cache

    def _everything(self) -> pl.DataFrame | None:
        return self._state.all()


class ColocatedTops(SeveralStates):
    """The best rows of one shard of the table directly before it. Only cached rows are kept here."""

    def __init__(self, spec: TopSpec) -> None:
        self._spec = spec
        self._row_key, self._group = list(spec.row_key), list(spec.group)
        self._state = KeyedState("row", spec.row_key)
        self._emitted = Emitted(spec.row_key)
        super().__init__(self._state, self._emitted)
        self._cache: TopCache | None = None

    def restore(self, manifest: str | None, store: Store) -> None:
        super().restore(manifest, store)
        self._cache = None

    def export(self) -> Exported:
        """What was emitted. The cached rows are those of other shards after a move, and are found again in the table."""
        if self._emitted.pending:
            return self._emitted.export()
        rows = self._state.all()
        return Exported({} if rows is None else {EMITTED: self._cached(rows).best})

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if self._emitted.pending:
            return self._settled(arrived, time, store)
        if not arrived.rows:
            return Outcome()
        changes = arrived.rows[0] if len(arrived.rows) == 1 else as_upserts(pl.concat(arrived.rows), self._row_key)
        fresh = changes.filter(self._spec.holding()).drop(OP)
        cache = self._cached(fresh)
        near, leaving = cache.above(fresh), cache.of(changes)
        if near.is_empty() and leaving.is_empty():
            # The rows of their group in the cache are better.
            return Outcome(counts=without_result(changes.height))
        keys = pl.concat([near.select_seq(self._row_key), leaving.select_seq(self._row_key)]).unique()

        before, everything = cache.rows, partial(self._everything, arrived, time)
        results = cache.change(near, keys, groups_of_rows([near, leaving], self._group), everything)
        self._keep(before, cache.rows, keys, store)
        return Outcome(results, counts=without_result(changes.height - keys.height))

    def _settled(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        """Find the cached rows after a move; what arrived is already in the table."""
        changes = as_upserts(pl.concat(arrived.rows), self._row_key) if arrived.rows else None
        rows = self._everything(arrived, time)
        best = None
        if rows is not None:
            rows = rows.drop(OP)
            self._cache = TopCache(self._spec.order, rows)
            best = self._cache.best
            self._keep(rows.clear(), self._cache.rows, rows.select_seq(self._row_key), store)
        return Outcome(self._emitted.settled(best, changes, pl.lit(False), store))

    def _everything(self, arrived: Arrived, time: EpochTime) -> pl.DataFrame | None:
        rows = arrived.table() if arrived.table is not None else None
        return None if rows is None else self._spec.enter(rows, time).rows.filter(self._spec.holding())

    def _keep(self, before: pl.DataFrame, after: pl.DataFrame, keys: pl.DataFrame, store: Store) -> None:
        """Write rows that entered the cache or changed, and tombstones for those that left it."""
        stayed = before.join(keys, on=self._row_key, how="anti", nulls_equal=True)
        come = after.join(stayed, on=self._row_key, how="anti", nulls_equal=True).with_columns_seq(pl.lit(False).alias(GONE))
        gone = before.join(after, on=self._row_key, how="anti", nulls_equal=True).with_columns_seq(pl.lit(True).alias(GONE))
        self._state.put(pl.concat([come, gone]), store)

    def _cached(self, like: pl.DataFrame) -> TopCache:
        if self._cache is None:
            rows = self._state.all()
            self._cache = TopCache.found_again(self._spec.order, like.clear() if rows is None else rows.select_seq(like.columns))
        return self._cache


@operator_of.register
def _(node: Top) -> Made:
    row_key, columns, colocated = node.input.keys, tuple(node.input.columns.names), bool(node.colocated_with)
    # Rows of one key must be co-located, those of one group need not: the columns they share distribute nothing.
    by = (tuple(name for name in row_key if name not in node.per) or row_key) if node.shared and not colocated else node.per or (ALL,)
    final = microseconds(node.lateness) if node.closes else None
    return single(
        TopSpec(row_key if colocated else by, row_key, node.score, node.per, node.count, columns, final, colocated, node.rank, node.shared)
    )
