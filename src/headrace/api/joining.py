"""Joins as the user writes them: the kinds of the inputs decide the kind of the join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pyarrow as pa

from headrace.api.arguments import Namer
from headrace.core.columns.schema import type_name
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.joins.as_of import AsOfJoin, versioned
from headrace.plan.joins.interval import IntervalJoin
from headrace.plan.joins.join import On, Sides, pairs_of
from headrace.plan.joins.lookup import SNAPSHOT, TableLookup
from headrace.plan.joins.tables import TableJoin, is_table
from headrace.plan.nodes import Node, column
from headrace.plan.tables.latest import ToTable

Within = Duration | tuple[Duration, Duration]


@dataclass(frozen=True)
class AsOf:
    """A table as of a time, in `stream.join(table.as_of(...), on=...)`."""

    namer: Namer
    node: ToTable
    moment: str
    history: timedelta


@dataclass(frozen=True)
class Near:
    """Which records of two streams meet, as the user wrote it."""

    within: Within | None
    pick: str
    where: str | None


@dataclass(frozen=True)
class JoinOptions:
    """How two inputs are joined, as the user wrote it."""

    on: On
    how: str
    suffix: str
    at: str | None
    broadcast: bool = False
    ttl: Duration | None = "required"
    wait: str | None = SNAPSHOT

    def sides(self, left: Node, right: Node) -> Sides:
        return Sides(left, right, pairs_of(self.on, left, right, self.at), self.how, self.suffix)


def as_of(namer: Namer, table: Node, moment: str, history: Duration, at: str | None) -> AsOf:
    """A table whose versions are kept."""
    return AsOf(namer, versioned(table, at), moment, duration(history))


def interval_join(name: str, left: Node, right: Node, asked: JoinOptions, near: Near) -> IntervalJoin:
    """The node of `join_within`."""
    at = asked.at
    before, after = _within(near.within, left, right, at)
    sides = asked.sides(left, right)
    columns = sides.columns
    joined = IntervalJoin(name, columns, at, sides, before, after, near.pick)
    return joined if near.where is None else replace(joined, condition=_condition(near.where, columns, at))


def join(name: str, left: Node, right: Node | AsOf, asked: JoinOptions) -> Node:
    """The node of `join`: a stream or a table with a table, current or as of a time."""
    if isinstance(right, AsOf):
        _refuse_a_copy_everywhere(asked)
        sides = asked.sides(left, right.node.input)
        column(left, right.moment, "as of")
        return AsOfJoin(name, sides.columns, asked.at, sides, right.node, right.moment, right.history)
    if not is_table(right):
        raise _unbounded(left, right, asked.at)
    sides = asked.sides(left, right)
    if not left.changes:
        return TableLookup(name, sides.columns, asked.at, sides, asked.broadcast, asked.wait)
    _refuse_a_copy_everywhere(asked)
    if asked.ttl not in ("required", None):
        raise PlanError(
            f"ttl={asked.ttl!r} of the join of {left.name!r} and {right.name!r}",
            why="a joined row is kept as long as the tables have its rows",
            hint='give the tables one: .to_table(key, ttl="30 days"), or ttl=None',
            where=asked.at,
        )
    return TableJoin(name, sides.columns, asked.at, sides, asked.ttl is None)


def _within(within: Within | None, left: Node, right: Node, at: str | None) -> tuple[timedelta, timedelta]:
    """How far before and after a left record the right ones may be; one duration means both ways."""
    if within is None:
        raise _unbounded(left, right, at)
    if isinstance(within, str | timedelta):
        return duration(within), duration(within)
    if not isinstance(within, tuple | list) or len(within) != 2:
        raise PlanError(f"within={within!r} is no stretch of time", hint='give how far before and after: within=("0s", "1 hour")', where=at)
    return duration(within[0]), duration(within[1])


def _condition(where: str, columns: pa.Schema, at: str | None) -> Typed:
    typed = check(parse(where, at), columns)
    if typed.type is not None and not pa.types.is_boolean(typed.type):
        raise PlanError(f"where={where!r} is {type_name(typed.type)}, not a condition", hint="compare it with something", where=at)
    return typed


def _refuse_a_copy_everywhere(asked: JoinOptions) -> None:
    if asked.broadcast:
        raise PlanError(
            "broadcast=True is for a stream that is joined with the current rows of a table",
            why="what two changing sides make of each other is kept once, by key",
            hint="leave it out",
            where=asked.at,
        )


def _unbounded(left: Node, right: Node, at: str | None) -> PlanError:
    return PlanError(
        f"stream join {left.name!r} x {right.name!r} has no time bound",
        why="its state would grow forever",
        hint='left.join_within(right, on=..., within=("0s", "30 minutes")), or make one a table: .to_table(key)',
        where=at,
    )
