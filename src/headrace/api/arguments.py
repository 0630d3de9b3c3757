"""Streams as arguments of other streams: they belong to the same app."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.where import caller
from headrace.plan.building.as_of_joins import VersionedTable
from headrace.plan.building.step_place import StepNames
from headrace.plan.nodes import Node


class Namer(StepNames, Protocol):
    """The app of a stream: it names steps, and shows the first rows of a node."""

    name: str

    def first_rows(self, node: Node) -> pa.Table | None: ...


def node_of(stream: Any, role: str, namer: Namer) -> Node:
    """The node of a stream or table of the same app that a method is given."""
    versions = getattr(stream, "versions", None)
    if isinstance(versions, VersionedTable):
        raise PlanError(
            f"{role}: {versions.node.name!r} as of a time",
            why="it has no rows of its own: which of its versions are valid depends on the records that are joined with it",
            hint='join a stream with it, stream.join(table.as_of("at", history="1 day"), on=...), or use the table itself',
            where=caller(),
        )
    node = getattr(stream, "node", None)
    if not isinstance(node, Node):
        raise PlanError(f"{role} of {type(stream).__name__}, which is neither a stream nor a table", hint=_hint(stream), where=caller())
    refuse_another_app(node, stream.namer, role, namer)
    return node


def _hint(stream: Any) -> str:
    if hasattr(stream, "agg"):
        return 'a window or a group becomes a stream or a table with its aggregates: .agg(views="count(*)")'
    return "give what app.stream(...), app.table(...) or a step after them returned"


def refuse_another_app(node: Node, declared_by: Namer, role: str, namer: Namer) -> None:
    """A node of one app has no place in another."""
    if declared_by is not namer:
        raise PlanError(
            f"{role}: {node.name!r} is declared by another app, {declared_by.name!r}",
            why="a job reads the streams of its own app",
            hint=f"declare the topic in app {namer.name!r}, too; results of {declared_by.name!r} are in the topic of its view or sink",
            where=caller(),
        )
