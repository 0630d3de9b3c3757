"""Changes of one row from several shards, in one place and in order: before a keyed output, and before changes become facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import ADD, OP, RETRACT, added, as_upserts
from headrace.operators.columns import ROW
from headrace.operators.contract import Arrived, Entered, Exported, Made, Outcome, Size, operator_of, single
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import Store
from headrace.plan.tables.meeting import Meeting


@dataclass(frozen=True)
class MeetingSpec:
    """The net effect of the changes of an epoch on each row that `by` identifies.

    With `upserts` that is the last change of a row, which replaces the one before in an output; else at most one retraction of a row, and
    at most one addition.
    """

    by: tuple[str, ...]
    upserts: bool = False

    def net(self, changes: pl.DataFrame) -> pl.DataFrame:
        return as_upserts(changes, self.by) if self.upserts else _net(changes, self.by)

    def enter(self, records: pl.DataFrame, time: EpochTime) -> Entered:
        """The net effect of the changes of one shard."""
        changes = records.drop(ROW, strict=False)
        return Entered(self.net(changes if OP in changes.columns else added(changes)), records.height)

    def closing(self, moment: int) -> int:
        return moment

    def fresh(self) -> Met:
        return Met(self)


class Met:
    """An operator without state."""

    def __init__(self, spec: MeetingSpec) -> None:
        self._spec = spec

    @property
    def size(self) -> Size:
        return Size()

    def run(self, arrived: Arrived, time: EpochTime, store: Store) -> Outcome:
        if not arrived.rows:
            return Outcome()
        # Of the shards of one row at most one retracts what was there before, and at most one adds what is there now.
        return Outcome([self._spec.net(pl.concat(arrived.rows, how="diagonal").sort(OP, maintain_order=True))])

    def manifest(self) -> str:
        return ""

    def restore(self, manifest: str | None, store: Store) -> None:
        """There is nothing to restore."""

    def export(self) -> Exported:
        return Exported()

    def absorb(self, moved: Exported, store: Store) -> None:
        """There is nothing to absorb."""


def _net(changes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The first change of each row if it is a retraction, and the last if it is an addition."""
    first, last = (changes.unique(subset=list(by), keep=keep, maintain_order=True) for keep in ("first", "last"))
    return pl.concat([first.filter(pl.col(OP) == RETRACT), last.filter(pl.col(OP) == ADD)])


@operator_of.register
def _(node: Meeting) -> Made:
    return single(MeetingSpec(node.input.keys))
