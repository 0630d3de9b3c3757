"""The nodes of a plan: streams and tables, and the steps between them. Frozen; they say what, never how.

Every node knows its columns, so that a mistake is found at the line that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.schema import TIMESTAMP
from headrace.plan.expressions import Typed
from headrace.plan.expressions.terms import Field
from headrace.plan.watermarks import Watermark
from headrace.plan.windows import Window


@dataclass(frozen=True)
class Node:
    """A stream or table of records. `where` is the user's file and line; `name` is unique in its app."""

    name: str
    columns: pa.Schema = field(compare=False)
    where: str | None = field(compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def changes(self) -> bool:
        """Whether its records update or delete earlier ones: a changelog, not a stream of facts."""
        return any(node.changes for node in self.inputs)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell its records apart; empty if nothing does."""
        return ()

    @property
    def watermarked(self) -> bool:
        return bool(self.inputs) and all(node.watermarked for node in self.inputs)

    @property
    def lateness(self) -> timedelta:
        """How far behind the watermark its records may be, because a step before it still corrects results."""
        return max((node.lateness for node in self.inputs), default=timedelta(0))


@dataclass(frozen=True)
class Source(Node):
    """Records of a topic, with their event time."""

    key: tuple[str, ...]
    time: str | None
    watermark: Watermark | None
    late: str = "side"

    @property
    def watermarked(self) -> bool:
        return self.watermark is not None


@dataclass(frozen=True)
class Step(Node):
    """A node made from one other."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def keys(self) -> tuple[str, ...]:
        kept = self.input.keys
        return kept if all(name in self.columns.names for name in kept) else ()


@dataclass(frozen=True)
class Where(Step):
    """Only the records for which a condition is true."""

    condition: Typed


@dataclass(frozen=True)
class Select(Step):
    """Other columns, each from an expression."""

    expressions: tuple[tuple[str, Typed], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key under its new names, if each of its columns is taken over as it is."""
        taken = {typed.term.name: name for name, typed in reversed(self.expressions) if isinstance(typed.term, Field)}
        kept = self.input.keys
        return tuple(taken[name] for name in kept) if all(name in taken for name in kept) else ()


@dataclass(frozen=True)
class Explode(Step):
    """One record for each element of an array column, under the name `into`."""

    expression: Typed
    into: str

    @property
    def keys(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Transform(Step):
    """Whatever a function from a PySpark DataFrame to a PySpark DataFrame makes of it; evaluated by Spark."""

    function: Callable[[Any], Any] = field(compare=False)

    @property
    def keys(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Union(Node):
    """The records of several streams with the same columns."""

    streams: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.streams


@dataclass(frozen=True)
class KeyBy(Step):
    """The same records under another key."""

    key: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """One aggregate call of an aggregation: the arguments are typed over the input's columns."""

    function: str
    placeholder: str
    arguments: tuple[Typed, ...]
    filter: Typed | None
    type: pa.DataType


@dataclass(frozen=True)
class Output:
    """A result column: its name and the expression over the placeholders of the calls."""

    name: str
    expression: Typed


@dataclass(frozen=True)
class Emit:
    """When results are given out. `until`: how long after its end a window may be corrected by late records."""

    until: timedelta = timedelta(0)


@dataclass(frozen=True)
class WindowAggregate(Step):
    """Aggregates per window and key."""

    window: Window
    by: tuple[str, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    emit: Emit = Emit()

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.by, "window_start")

    @property
    def changes(self) -> bool:
        return super().changes or self.emit.until > timedelta(0)

    @property
    def lateness(self) -> timedelta:
        return super().lateness + self.emit.until


@dataclass(frozen=True)
class GroupAggregate(Step):
    """Aggregates per key over everything so far: a table. A key without records for `ttl` (event time) is forgotten."""

    by: tuple[str, ...]
    ttl: timedelta | None
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.by

    @property
    def changes(self) -> bool:
        return True


@dataclass(frozen=True)
class ToTable(Step):
    """The latest record per key."""

    key: tuple[str, ...]
    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.key

    @property
    def changes(self) -> bool:
        return True


@dataclass(frozen=True)
class ToStream(Step):
    """The changes of a table as facts: the columns, and `op` that says insert, update or delete."""

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def changes(self) -> bool:
        return False


WINDOW_COLUMNS = (pa.field("window_start", TIMESTAMP), pa.field("window_end", TIMESTAMP))
PANE_COLUMNS = (pa.field("pane", pa.string()), pa.field("revision", pa.int32()))


def column(node: Node, name: str, role: str) -> pa.Field:
    """A column of a node by its name, or an error that says what there is."""
    if name not in node.columns.names:
        raise PlanError(
            f"{role} {name!r}: {node.name!r} has no such column", hint=f"columns: {', '.join(node.columns.names)}", where=node.where
        )
    return node.columns.field(name)
