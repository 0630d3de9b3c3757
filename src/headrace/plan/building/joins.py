"""Joins, built from two nodes and the columns that must be equal: the kinds of the inputs decide the kind of the join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.building.keyed import REQUIRED
from headrace.plan.building.step_place import StepPlace
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.joins.interval import ALL_MATCHES, IntervalJoin
from headrace.plan.joins.join import INNER, On, Sides, pairs_of
from headrace.plan.joins.lookup import SNAPSHOT, TableLookup
from headrace.plan.joins.tables import TableJoin, is_table
from headrace.plan.nodes import Node, told_apart

Within = Duration | tuple[Duration, Duration]


@dataclass(frozen=True)
class JoinArguments:
    """The arguments of every join; `broadcast`, `ttl` and `wait` are for joins with a table."""

    on: On
    how: str = INNER
    suffix: str = "_right"
    broadcast: bool = False
    ttl: Duration | None = REQUIRED
    wait: str | None = SNAPSHOT

    def sides(self, after: StepPlace, right: Node) -> Sides:
        return Sides(after.node, right, pairs_of(self.on, after.node, right, after.at), self.how, self.suffix)


@dataclass(frozen=True)
class Near:
    """Records of two streams that meet: how far apart, which of them, and on which condition."""

    within: Within | None
    pick: str = ALL_MATCHES
    where: str | None = None


def interval_join(after: StepPlace, right: Node, asked: JoinArguments, near: Near) -> IntervalJoin:
    """Two streams within a stretch of event time."""
    name = after.called("join")
    earliest, latest = _within(after, near.within, right)
    sides = asked.sides(after, right)
    joined = IntervalJoin(name, sides.columns, after.at, sides, earliest, latest, near.pick)
    return joined if near.where is None else replace(joined, condition=_condition(after, near.where, sides.columns))


def join(after: StepPlace, right: Node, asked: JoinArguments) -> TableLookup | TableJoin:
    """A stream or a table with the current rows of a table."""
    name = after.called("join")
    _refuse_keyless_tables(after, right)
    if not is_table(right):
        raise _turned_around(after, right) if after.node.changes else _unbounded(after, right)
    sides = asked.sides(after, right)
    refuse_ttl(after, right, asked)
    if not after.node.changes:
        return TableLookup(name, sides.columns, after.at, sides, asked.broadcast, asked.wait)
    refuse_broadcast(after, asked)
    refuse_wait(after, right, asked)
    return TableJoin(name, sides.columns, after.at, sides, asked.ttl is None)


def _refuse_keyless_tables(after: StepPlace, right: Node) -> None:
    keyless = next((node for node in (after.node, right) if node.changes and not node.keys), None)
    if keyless is not None:
        raise after.refused(
            f"the join of {after.node.name!r} and {right.name!r}: nothing tells the rows of {keyless.name!r} apart",
            why="a row that is replaced could not be found",
            hint=told_apart(keyless),
        )


def refuse_ttl(after: StepPlace, right: Node, asked: JoinArguments) -> None:
    """Only tables expire rows."""
    if asked.ttl not in (REQUIRED, None):
        raise after.refused(
            f"ttl={asked.ttl!r} of the join of {after.node.name!r} and {right.name!r}",
            why="a row is in results as long as its table has it",
            hint='give the tables one: .to_table(key, ttl="30 days"), or ttl=None',
        )


def refuse_wait(after: StepPlace, right: Node, asked: JoinArguments) -> None:
    """Only records that meet the current rows of a table may come before these are read."""
    if asked.wait != SNAPSHOT:
        raise after.refused(
            f"wait={asked.wait!r} of the join of {after.node.name!r} and {right.name!r}",
            why="its results do not depend on which side is read first",
            hint="leave it out",
        )


def refuse_broadcast(after: StepPlace, asked: JoinArguments) -> None:
    """Only current rows of a table that a stream asks for can be on every shard."""
    if asked.broadcast:
        raise after.refused(
            "broadcast=True is for a stream that is joined with the current rows of a table",
            why="the rows of a join of two tables are kept once, by key",
            hint="leave it out",
        )


def _within(after: StepPlace, within: Within | None, right: Node) -> tuple[timedelta, timedelta]:
    """How far before and after a left record the right ones may be; one duration means both ways."""
    if within is None:
        raise _unbounded(after, right)
    if isinstance(within, str | timedelta):
        return duration(within), duration(within)
    if not isinstance(within, tuple | list) or len(within) != 2:
        raise after.refused(f"within={within!r} is not a time range", hint='give how far before and after: within=("0s", "1 hour")')
    return duration(within[0]), duration(within[1])


def _condition(after: StepPlace, where: str, columns: pa.Schema) -> Typed:
    typed = check(parse(where, after.at), columns)
    if typed.type is not None and pa.types.is_null(typed.type):
        return check(parse(f"cast({where} as boolean)", after.at), columns)
    if typed.type is not None and not pa.types.is_boolean(typed.type):
        raise after.refused(f"where={where!r} is {type_name(typed.type)}, not a condition", hint="compare it with something")
    return typed


def _turned_around(after: StepPlace, right: Node) -> PlanError:
    return after.refused(
        f"table {after.node.name!r} is joined with stream {right.name!r}",
        why="records of a stream meet the rows of a table, and a result is a record",
        hint=f"begin with the stream: {right.name!r}.join({after.node.name!r}, on=...), or make it a table, too: .to_table(key)",
    )


def _unbounded(after: StepPlace, right: Node) -> PlanError:
    return after.refused(
        f"stream join {after.node.name!r} x {right.name!r} has no time bound",
        why="its state would grow forever",
        hint='left.join_within(right, on=..., within=("0s", "30 minutes")), or make one a table: .to_table(key)',
    )
