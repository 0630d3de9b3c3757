"""The ways into a join: rows of a stream, judged for lateness, and changes of a table."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import OP, TIME, added, as_upserts
from headrace.operators.columns import ROW
from headrace.operators.contract import Entered
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.event_time.late import in_time
from headrace.operators.expressions import REASON


@dataclass(frozen=True)
class TimedRecords:
    """Records of a stream that may come `lateness` microseconds behind the watermark, and not later."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    lateness: int

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """Records as they are. One behind the watermark is late: what it would meet may be forgotten."""
        timed = records.get_column(TIME).is_not_null()
        untimed = None if timed.all() else records.filter(~timed).with_columns_seq(pl.lit("it has no event time").alias(REASON))
        records, late = in_time(records.filter(timed) if untimed is not None else records, time.before - self.lateness)
        return Entered(records.select_seq(*self.columns, TIME), records.height, late, untimed)


@dataclass(frozen=True)
class AnyRecords:
    """Records of a stream, whatever their time."""

    by: tuple[str, ...]
    columns: tuple[str, ...]

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        return Entered(records.select_seq(*self.columns, TIME), records.height)


@dataclass(frozen=True)
class TableChanges:
    """The changes of a table, whose rows `identity` tells apart.

    `named`: rows of both tables may be in a result without a match, so that a row must have a key that is no other's.
    """

    by: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    named: bool = False

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each row that is co-located by `by`."""
        changes, bad = self._told_apart(records if OP in records.columns else added(records))
        identity = tuple(dict.fromkeys((*self.by, *self.identity)))
        rows = as_upserts(changes.drop(ROW, strict=False).select_seq(*self.columns, TIME, OP), identity)
        return Entered(rows, changes.height, bad=bad)

    def _told_apart(self, changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Changes of rows that have a key, and of those that would look like a row of the other table."""
        if not self.named:
            return changes, None
        own = [pl.col(name).is_null() for name in self.identity if name not in self.by]
        nameless = pl.all_horizontal(own) if own else pl.any_horizontal(pl.col(name).is_null() for name in self.by)
        found = changes.select_seq(nameless).to_series()
        if not found.any():
            return changes, None
        reason = pl.lit("its key is null, and in a full join nothing tells it from a row of the other table")
        return changes.filter(~found), changes.filter(found).with_columns_seq(reason.alias(REASON))
