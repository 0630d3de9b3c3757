"""What methods of streams are given, read and checked: names and types of columns, times to live, and names for steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from headrace.core.durations import Duration
from headrace.core.errors import PlanError
from headrace.core.names import Names, listed
from headrace.core.where import caller
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Node, column
from headrace.plan.own import Aggregate


class Namer(Protocol):
    """Gives each step of an app its own name, and knows the app's own aggregate functions."""

    @property
    def aggregates(self) -> Mapping[str, Aggregate]: ...

    def step_name(self, base: str) -> str: ...


def node_of(stream: Any, role: str) -> Node:
    """The node of a stream or table that a method is given."""
    node = getattr(stream, "node", None)
    if not isinstance(node, Node):
        raise PlanError(
            f"{role} of {type(stream).__name__}, which is no stream and no table",
            hint='windows and groups become one when it is said what is computed: .agg(views="count(*)")',
            where=caller(),
        )
    return node


def columns_of(names: Names, node: Node, role: str) -> tuple[str, ...]:
    """Names of columns, or one, all of which a node has."""
    return tuple(column(node, name, role).name for name in listed(names))


def refuse_twice(columns: pa.Schema, at: str | None) -> None:
    """Two results under one name could not be told apart."""
    twice = [name for name in columns.names if columns.names.count(name) > 1]
    if twice:
        raise PlanError(f"the result has two columns {twice[0]!r}", hint="give one of them another name", where=at)


def typed_field(name: str, typed: Typed, text: str, at: str | None) -> pa.Field:
    """The column that an expression makes, which the user wrote as `text`."""
    if typed.type is None:
        raise PlanError(
            f"{text!r}: only Spark knows its type",
            why=typed.reason,
            hint=f"give {name!r} one: cast({text} as string), or as any other type",
            where=at,
        )
    return pa.field(name, typed.type)


def refuse_without_ttl(ttl: Duration | None, said: str, at: str | None) -> None:
    """Whoever keeps something for each key says for how long, or that it is for ever."""
    if ttl == "required":
        raise PlanError(
            f"{said} has no ttl",
            why="its state would grow with every new key, for ever",
            hint='give ttl="30 days", or ttl=None if the keys are few',
            where=at,
        )
