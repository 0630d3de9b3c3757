"""The join with a table as of a time, built from the table, the column of the time and the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import Duration, duration
from headrace.plan.building.joins import JoinArguments, refuse_broadcast
from headrace.plan.building.step_place import StepPlace
from headrace.plan.joins.as_of import AsOfJoin, versioned
from headrace.plan.nodes import Node, column
from headrace.plan.tables.latest import ToTable


@dataclass(frozen=True)
class VersionedTable:
    """A table whose versions are kept for `history`, as of the time in the column `moment` of the stream that joins it."""

    node: ToTable
    moment: str
    history: timedelta


def versioned_table(table: Node, moment: str, history: Duration, at: str | None) -> VersionedTable:
    return VersionedTable(versioned(table, at), moment, duration(history))


def as_of_join(after: StepPlace, right: VersionedTable, asked: JoinArguments) -> AsOfJoin:
    name = after.called("join")
    refuse_broadcast(after, asked)
    sides = asked.sides(after, right.node.input)
    column(after.node, right.moment, "as of")
    return AsOfJoin(name, sides.columns, after.at, sides, right.node, right.moment, right.history)
