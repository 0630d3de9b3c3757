"""The latest record per key of results that change: all live ones are kept, so that another takes its place when one is retracted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.core.durations import microseconds
from headrace.operators.changes import ADD, OP, TIME, added, as_upserts, retracted
from headrace.operators.columns import ROW
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.keyed import GONE
from headrace.operators.state.store import Store
from headrace.operators.tables.groups import LAST, KeyedTable, TableSpec
from headrace.plan.tables.latest import ToTable

_ROWS = "_candidates"


@dataclass(frozen=True)
class CandidateSpec:
    """The latest record per `by` among those that `row_key` identifies; for equal times the one with the largest `row_key`."""

    by: tuple[str, ...]
    row_key: tuple[str, ...]
    ttl: int | None

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each record."""
        return Entered(as_upserts(records.drop(ROW, strict=False), (*self.by, *self.row_key)), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> LatestOfChanges:
        return LatestOfChanges(self)


class LatestOfChanges(KeyedTable):
    """The records of one shard, and the latest live one of each key."""

    def __init__(self, spec: CandidateSpec) -> None:
        super().__init__(spec.by, spec.ttl)
        self._row_key = list(spec.row_key)
        self._identity = [*self._key, *(name for name in self._row_key if name not in self._key)]

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome(self._expire(time, store))
        changes = as_upserts(pl.concat(arrived.rows), self._identity)
        fresh = changes.filter(pl.col(OP) == ADD).drop(OP)
        found = self._present(changes.select_seq(self._key).unique(), time)
        before = fresh.clear() if found is None else self._candidates(found).select_seq(fresh.columns)
        after = pl.concat([self._without(before, changes), fresh])
        self._keep(before, after, store)
        return Outcome([*self._emitted(before, after, changes), *self._expire(time, store)])

    def _emitted(self, before: pl.DataFrame, after: pl.DataFrame, changes: pl.DataFrame) -> list[pl.DataFrame]:
        old, new = self._latest(before), self._latest(after)
        same = self._without(old.join(new, on=self._identity, how="semi", nulls_equal=True), changes)
        gone, come = self._without(old, same), self._without(new, same)
        return [said for said in (retracted(gone), added(come)) if said.height]

    def _keep(self, before: pl.DataFrame, after: pl.DataFrame, store: Store) -> None:
        rest = [name for name in after.columns if name not in self._key]
        rows = after.group_by(self._key).agg(
            pl.col(TIME).max().alias(LAST), pl.struct(rest).alias(_ROWS), pl.lit(False).first().alias(GONE)
        )
        empty = before.select_seq(self._key).unique().join(after, on=self._key, how="anti", nulls_equal=True)
        marks = empty.with_columns_seq(
            pl.lit(None, rows.schema[LAST]).alias(LAST), pl.lit(None, rows.schema[_ROWS]).alias(_ROWS), pl.lit(True).alias(GONE)
        )
        self._state.put(pl.concat([rows, marks.select_seq(rows.columns)]), store)

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self._latest(self._candidates(rows))

    def _candidates(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select_seq(*self._key, _ROWS).explode(_ROWS).unnest(_ROWS)

    def _latest(self, candidates: pl.DataFrame) -> pl.DataFrame:
        ordered = candidates.sort(TIME, *self._row_key, nulls_last=False)
        return ordered.unique(subset=self._key, keep="last", maintain_order=True)

    def _without(self, rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        return rows.join(others, on=self._identity, how="anti", nulls_equal=True)


@operator_of.register
def _(node: ToTable) -> Made:
    row_key, ttl = node.input.keys, None if node.ttl is None else microseconds(node.ttl)
    if not node.input.changes or (row_key and set(row_key) <= set(node.key)):
        return single(TableSpec(node.key, ttl, follows=node.input.changes))
    return single(CandidateSpec(node.key, row_key, ttl))
