"""Streams as arguments of other streams: they belong to the same app."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.where import caller
from headrace.plan.building.step_place import StepNames
from headrace.plan.nodes import Node


class Namer(StepNames, Protocol):
    """The app of a stream: it names steps, and shows the first rows of a node."""

    name: str

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
