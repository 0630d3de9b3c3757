"""Targets of sinks, and the key by which their rows replace each other: what does not fit is refused before anything runs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.promise import Promise, Takes
from headrace.plan.nodes import Node, column, told_apart


@runtime_checkable
class Target(Protocol):
    """A place in another system as a user declares it; nothing is connected."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify its rows; none: those of the results."""
        ...

    @property
    def promise(self) -> Promise:
        """What it takes, and what it guarantees."""
        ...

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if it cannot store these columns, of which `key` identifies rows, or if its client is missing."""
        ...


def folding_key(node: Node, target: Target) -> tuple[str, ...]:
    """The columns by which a target has one row for each key; none if it appends facts."""
    return target.key or node.keys if node.changes or (target.key and target.promise.takes is Takes.LATEST) else ()


def check_target(sink: str, node: Node, target: Any, where: str | None) -> Target:
    """A checked target; raises if it is not one, or cannot store the results of a node."""
    if not isinstance(target, Target):
        raise PlanError(
            f"sink {sink!r}: {target!r} is not a target", hint='write to hr.log("topic"), hr.postgres("table", ...), ...', where=where
        )
    for part in target.key:
        column(node, part, f"key of sink {sink!r}")
    key = folding_key(node, target)
    if node.changes and not key:
        raise PlanError(
            f"sink {sink!r}: results of {node.name!r} replace earlier ones, and nothing tells which",
            hint=told_apart(node),
            where=where,
        )
    target.check(node.columns, key)
    return target
