"""The join with a table as of a time, built from the table, the column of the time and the history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.building.joins import JoinArguments, refuse_broadcast, refuse_ttl, refuse_wait
from headrace.plan.building.step_place import StepPlace
from headrace.plan.joins.as_of import AsOfJoin, versions_of
from headrace.plan.nodes import Node, column


@dataclass(frozen=True)
class VersionedTable:
    """A table whose versions are kept for `history`, as of the time in the column `moment` of the stream that joins it."""

    node: Node
    versions: Node
    moment: str
    history: timedelta


def versioned_table(table: Node, moment: str, history: Duration, at: str | None) -> VersionedTable:
    return VersionedTable(table, versions_of(table, at), moment, duration(history))


def as_of_join(after: StepPlace, right: VersionedTable, asked: JoinArguments) -> AsOfJoin:
    name = after.called("join")
    refuse_broadcast(after, asked)
    refuse_ttl(after, right.node, asked)
    refuse_wait(after, right.node, asked)
    sides = asked.sides(after, right.versions)
    column(after.node, right.moment, "as of")
    return AsOfJoin(name, sides.columns, after.at, sides, right.node, right.moment, right.history)


def answered_early(join: AsOfJoin, early: bool, key: Names, at: str | None) -> AsOfJoin:
    """The same join, which answers each record at once and corrects the answer; `key` identifies a record."""
    if early is not True:
        raise PlanError(
            f"emit(early={early!r}) of {join.name!r}",
            why="a result is emitted at once and corrected when the watermark has passed, and not in between",
            hint='emit(early=True, key="id"), or leave emit out to get only the final result',
            where=at,
        )
    if not listed(key):
        raise PlanError(
            f"emit(early=True) of {join.name!r} has no key",
            why="it would not be known which record a correction belongs to",
            hint='name the columns that identify a record: emit(early=True, key="id")',
            where=at,
        )
    for name in listed(key):
        column(join.sides.left, name, "emit by")
    return replace(join, early=listed(key))
