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
class LikeOthers:
    """Rows that a full join cannot tell from those of the other table, if neither has a match: `all_null` are all null, and one of
    `any_null` is, if it names some."""

    all_null: tuple[str, ...]
    any_null: tuple[str, ...] = ()

    def condition(self) -> pl.Expr:
        found = [pl.col(name).is_null() for name in self.all_null]
        if self.any_null:
            found.append(pl.any_horizontal(pl.col(name).is_null() for name in self.any_null))
        return pl.all_horizontal(found)


@dataclass(frozen=True)
class TableChanges:
    """The changes of a table, whose rows `identity` tells apart; those that look `like_others` are dead letters."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    like_others: LikeOthers | None = None

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of a batch on each row that is co-located by `by`."""
        changes, bad = self._told_apart(records if OP in records.columns else added(records))
        identity = tuple(dict.fromkeys((*self.by, *self.identity)))
        rows = as_upserts(changes.drop(ROW, strict=False).select_seq(*self.columns, TIME, OP), identity)
        return Entered(rows, changes.height, bad=bad)

    def _told_apart(self, changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Changes of rows that have a key, and of those that would look like a row of the other table."""
        if self.like_others is None:
            return changes, None
        found = changes.select_seq(self.like_others.condition()).to_series()
        if not found.any():
            return changes, None
        parts = " or ".join(self.like_others.any_null) or " and ".join(self.like_others.all_null)
        reason = pl.lit(f"{parts} is null, and in a full join nothing tells it from a row of the other table")
        return changes.filter(~found), changes.filter(found).with_columns_seq(reason.alias(REASON))
