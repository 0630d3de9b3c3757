"""The arguments of stream methods, read and checked: names and types of columns, times to live, and names for steps."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Signature, signature
from typing import Any, Protocol

import pyarrow as pa

from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration
from headrace.core.errors import PlanError
from headrace.core.where import caller
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Node, column


class Namer(Protocol):
    """Gives each step of an app its own name, and knows the app's own aggregate functions."""

    name: str

    @property
    def aggregates(self) -> Mapping[str, Aggregate]: ...

    def step_name(self, base: str, name: str | None = None) -> str: ...

    def first_rows(self, node: Node) -> pa.Table | None: ...


def node_of(stream: Any, role: str, namer: Namer) -> Node:
    """The node of a stream or table of the same app that a method is given."""
    node = getattr(stream, "node", None)
    if not isinstance(node, Node):
        raise PlanError(
            f"{role} of {type(stream).__name__}, which is no stream and no table",
            hint='windows and groups become one when it is said what is computed: .agg(views="count(*)")',
            where=caller(),
        )
    if stream.namer is not namer:
        raise PlanError(
            f"{role}: {node.name!r} is declared by another app, {stream.namer.name!r}",
            why="a job reads the streams of its own app",
            hint=f"declare the topic in app {namer.name!r}, too; results of {stream.namer.name!r} are in the topic of its view or sink",
            where=caller(),
        )
    return node


def columns_of(names: Names, node: Node, role: str) -> tuple[str, ...]:
    """Names of columns, or one, all of which a node has."""
    return tuple(column(node, name, role).name for name in listed(names))


def refuse_twice(columns: pa.Schema, at: str | None) -> None:
    """Two results with one name could not be distinguished."""
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


def refuse_unnamed(unnamed: tuple[str, ...], at: str | None) -> None:
    """A result without a name could not be read by any step."""
    if unnamed:
        raise PlanError(f"agg({unnamed[0]!r}) has no name for its result", hint=f'name it: agg(n="{unnamed[0]}")', where=at)


def refuse_arity(function: Any, takes: tuple[str, ...], role: str, at: str | None) -> None:
    """A function with other parameters would fail for every record; it may take only the first of them."""
    said, name = f"({', '.join(takes)})", getattr(function, "__name__", repr(function))
    if not callable(function):
        raise PlanError(f"{role}: {function!r} is no function", hint=f"give one that is called with {said}", where=at)
    try:
        known = signature(function)
    except ValueError:
        # Some functions written in C do not tell.
        return
    if not any(_binds(known, takes[:count]) for count in range(1, len(takes) + 1)):
        raise PlanError(f"{role}: {name}{known} is called with {said}", hint=f"let it take these: {name}{said}", where=at)


def _binds(known: Signature, arguments: tuple[str, ...]) -> bool:
    try:
        known.bind(*arguments)
    except TypeError:
        return False
    return True


def refuse_without_ttl(ttl: Duration | None, said: str, at: str | None) -> None:
    """A step that keeps something for each key declares for how long, or that it is forever."""
    if ttl == "required":
        raise PlanError(
            f"{said} has no ttl",
            why="its state would grow with every new key, for ever",
            hint='give ttl="30 days", or ttl=None if the keys are few',
            where=at,
        )
