"""The join of a stream with the current rows of a table: a copy of the table, fed by its changes.

The changes of an epoch are applied before the records of that epoch are joined, so that a replay gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.changes import ADD, OP, TIME, added, as_upserts
from headrace.operators.contract import Arrived, Exported, Made, Outcome, Port, operator_of, without_result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.frames import columns_of, rows_at, rows_where
from headrace.operators.joins.entrances import AnyRecords, TableChanges
from headrace.operators.joins.pairing import Pairing
from headrace.operators.state.found_rows import distinct_keys
from headrace.operators.state.keyed import GONE, KeyedState
from headrace.operators.state.persistent import OneState
from headrace.operators.state.store import Store
from headrace.plan.joins.join import LEFT, RIGHT
from headrace.plan.joins.lookup import TableLookup


@dataclass(frozen=True)
class LookupSpec:
    """Each record with the row of its key; `keeps_left`: also without one."""

    pairing: Pairing
    keeps_left: bool
    broadcast: bool = False
    """Whether every shard has all rows of the table."""

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> TableCopy:
        return TableCopy(self)


class TableCopy(OneState[KeyedState]):
    """The rows of a table of one shard, or all of them."""

    def __init__(self, spec: LookupSpec) -> None:
        super().__init__(KeyedState("row", spec.pairing.on))
        self._spec, self._pairing = spec, spec.pairing

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        self._apply(self._pairing.right_rows(arrived.at(RIGHT)), store)
        records = self._pairing.left_rows(arrived.at(LEFT))
        if records.is_empty():
            return Outcome()
        places, rows = self._rows_of(records)
        results = [] if rows is None else [self._pairing.pairs(rows_at(records, places), rows)]
        alone = np.ones(records.height, dtype=bool)
        alone[places] = False
        unmatched = int(alone.sum())
        if self._spec.keeps_left:
            results.append(self._pairing.left_alone(rows_where(records, alone)))
            unmatched = 0
        return Outcome([added(part) for part in results if part.height], counts=without_result(unmatched))

    def export(self) -> Exported:
        kept = super().export()
        return Exported(everywhere=kept.frames) if self._spec.broadcast else kept

    def absorb(self, moved: Exported, store: Store) -> None:
        super().absorb(Exported(moved.everywhere) if self._spec.broadcast else moved, store)

    def _apply(self, changes: pl.DataFrame, store: Store) -> None:
        """Write the changes of the table. A row without a key matches nothing, and is not kept."""
        if changes.is_empty():
            return
        latest = as_upserts(changes.filter(self._pairing.keyed()), self._pairing.on)
        self._state.put(latest.with_columns_seq((pl.col(OP) != ADD).alias(GONE)).drop(OP), store)

    def _rows_of(self, records: pl.DataFrame) -> tuple[np.ndarray, pl.DataFrame | None]:
        """The places of records that have a row, and these rows in their order."""
        keyed = records.select_seq(self._pairing.keyed()).to_series().to_numpy()
        numbers = np.flatnonzero(keyed)
        keys, of_record = distinct_keys(rows_at(columns_of(records, self._pairing.on), numbers))
        located = self._state.locate(keys)
        if located.found is None:
            return numbers[:0], None
        at = np.full(keys.height, -1, dtype=np.int64)
        at[located.places] = np.arange(len(located.places))
        row = at[of_record]
        names = [*self._pairing.on, *(name for name, _ in self._pairing.right), TIME]
        return numbers[row >= 0], rows_at(columns_of(located.found, names), row[row >= 0])


@operator_of.register
def _(node: TableLookup) -> Made:
    sides = node.sides
    table = TableChanges(sides.right_on, tuple(sides.right.columns.names), sides.right.keys)
    ports = {
        LEFT: Port(AnyRecords(node.spread_by or sides.left_on, tuple(sides.left.columns.names)), compared=sides.left_on),
        RIGHT: Port(table, broadcast=node.broadcast),
    }
    return Made(LookupSpec(Pairing.of(sides), sides.keeps_left, node.broadcast), ports)
