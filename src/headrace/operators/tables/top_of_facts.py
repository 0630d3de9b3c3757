"""The best records among facts, in their places: a batch is trimmed to its best before the shuffle, and no other is ever kept."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import TIME, added, retracted
from headrace.operators.columns import ALL
from headrace.operators.contract import Arrived, Entered, Made, Outcome, operator_of, single
from headrace.operators.event_time.arrival_order import contents_of
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.keyed import KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.plan.tables.top import TopOfFacts

_ROWS, _CONTENTS, _PLACE, _BEFORE = "_rows", "_contents", "_place", "_before"


@dataclass(frozen=True)
class FactsTopSpec:
    """The `count` records with the largest `score` for each value of `by`; among equal ones the earliest, then by their contents."""

    by: tuple[str, ...]
    score: str
    count: int
    columns: tuple[str, ...]
    rank: str

    @property
    def kept(self) -> list[str]:
        """The columns of a record other than those of its group."""
        return [*(name for name in self.columns if name not in self.by), TIME, _CONTENTS]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The best of a batch: no other record can have a place."""
        rows = records.filter(pl.col(self.score).is_not_null()).select_seq(*self.columns, TIME)
        rows = rows.with_columns_seq(contents_of(self.columns).alias(_CONTENTS), pl.lit(0, pl.Int32).alias(ALL))
        return Entered(self.placed(rows).filter(pl.col(_PLACE) <= self.count).select_seq(*self.by, *self.kept), records.height)

    def placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows by group and in their order, with the place of each."""
        order = [*self.by, self.score, TIME, _CONTENTS]
        falling = [name == self.score for name in order]
        # A group by its own score has only equal records.
        ordered = rows.sort(order, descending=falling, nulls_last=True, maintain_order=True)
        return ordered.with_columns_seq((pl.int_range(pl.len(), dtype=pl.Int64) + 1).over(self.by).alias(_PLACE))

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> FactsTop:
        return FactsTop(self)


class FactsTop(OneState[KeyedState]):
    """The best records of the groups of one shard: a row a group, with its records in their order."""

    def __init__(self, spec: FactsTopSpec) -> None:
        self._spec, self._by = spec, list(spec.by)
        super().__init__(KeyedState("group", spec.by))

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome()
        spec, fresh = self._spec, pl.concat(arrived.rows)
        found = self._state.find(fresh.select_seq(self._by).unique())
        rows = fresh.with_columns_seq(pl.lit(None, pl.Int64).alias(_BEFORE))
        if found is not None:
            rows = pl.concat([self._held(found).rename({_PLACE: _BEFORE}).select_seq(rows.columns), rows])
        placed = spec.placed(rows)
        moved = placed.filter(pl.col(_PLACE).ne_missing(pl.col(_BEFORE)))
        best = placed.filter(pl.col(_PLACE) <= spec.count)
        changed = best.join(moved.filter(pl.col(_PLACE) <= spec.count), on=self._by, how="semi", nulls_equal=True)
        if changed.height:
            groups = changed.group_by(self._by, maintain_order=True).agg(pl.struct(spec.kept).alias(_ROWS))
            self._state.put(groups, store)
        gone = moved.filter(pl.col(_BEFORE).is_not_null())
        come = moved.filter(pl.col(_PLACE) <= spec.count)
        said = retracted(self._shown(gone, _BEFORE)), added(self._shown(come, _PLACE))
        return Outcome([part for part in said if part.height])

    def table(self) -> pl.DataFrame | None:
        """All live rows."""
        found = self._state.all()
        return None if found is None else added(self._shown(self._held(found), _PLACE))

    def _held(self, groups: pl.DataFrame) -> pl.DataFrame:
        """The records of groups, each in its place."""
        return self._spec.placed(groups.explode(_ROWS).unnest(_ROWS))

    def _shown(self, rows: pl.DataFrame, place: str) -> pl.DataFrame:
        return rows.select_seq(*self._spec.columns, pl.col(place).alias(self._spec.rank), TIME)


@operator_of.register
def _(node: TopOfFacts) -> Made:
    return single(FactsTopSpec(node.per or (ALL,), node.score, node.count, tuple(node.input.columns.names), node.rank))
