"""The nodes of a plan: streams and tables, and the steps between them. Frozen; they say what, never how.

Every node knows its columns, so that a mistake is found at the line that made it, and its words, so that a plan can be explained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.schema import ddl
from headrace.core.where import caller
from headrace.plan.expressions import Typed
from headrace.plan.watermarks import Watermark


@dataclass(frozen=True)
class Named:
    """A column and the expression that makes it."""

    name: str
    expression: Typed


@dataclass(frozen=True)
class Memory:
    """What a step keeps from epoch to epoch, and when it lets go of it, in words."""

    state: str = "nothing"
    bound: str = ""


@dataclass(frozen=True)
class Node:
    """A stream or table of records. `where` is the user's file and line; `name` is unique in its app."""

    stateful: ClassVar[bool] = False
    """Whether an operator with state computes it."""

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
    def restates(self) -> bool:
        """Whether its records say again what earlier ones said, and do not take those back."""
        return any(node.restates for node in self.inputs)

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

    @property
    def expressions(self) -> Iterator[Typed]:
        """What is evaluated for each record that comes in."""
        return iter(())

    @property
    def results(self) -> tuple[Named, ...]:
        """What is evaluated for each result that an operator gives out."""
        return ()

    @property
    def placeholders(self) -> tuple[pa.Field, ...]:
        """The columns that `results` are evaluated over, beside those that go out as they are."""
        return ()

    @property
    def does(self) -> str:
        """What the step does, in words. They tell whether a job may go on with its state."""
        raise TypeError(f"{type(self).__name__} has no words")

    @property
    def memory(self) -> Memory:
        return Memory()

    @property
    def gathers(self) -> bool:
        """Whether every record of a key has to meet the others, so that none can be united with others before that."""
        return False

    @property
    def beside(self) -> str:
        """The table in whose tasks it works, on the rows that are kept there; empty where it has tasks and rows of its own."""
        return ""

    @property
    def foreign(self) -> str:
        """Why Spark itself must evaluate the step; empty where it need not."""
        typed = (*self.expressions, *(result.expression for result in self.results))
        return next((one.reason for one in typed if not one.fused), "")


@dataclass(frozen=True)
class Source(Node):
    """Records of a topic, with their event time."""

    key: tuple[str, ...]
    time: str | None
    watermark: Watermark | None
    late: str = "side"
    connector: Any = field(default=None, compare=False)
    """What declares the topic of another system; None for a topic of the log."""
    align: timedelta | None = field(default=None, compare=False)
    """How far it may be read ahead of the slowest other stream, in event time."""
    partitions: int | None = field(default=None, compare=False)
    """How many its topic has, where that is known."""

    @property
    def watermarked(self) -> bool:
        return self.watermark is not None

    @property
    def does(self) -> str:
        key = f", key {', '.join(self.key)}" if self.key else ""
        time = f", time {self.time}, watermark {self.watermark}" if self.time else ""
        return f"stream ({ddl(self.columns)}){key}{time}"


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
class TableStep(Step):
    """A step that keeps rows, each of which holds until it is replaced or taken back."""

    stateful: ClassVar[bool] = True

    @property
    def changes(self) -> bool:
        return True

    @property
    def restates(self) -> bool:
        return False


def column(node: Node, name: str, role: str) -> pa.Field:
    """A column of a node by its name, or an error that says what there is."""
    if name not in node.columns.names:
        raise PlanError(
            f"{role} {name!r}: {node.name!r} has no such column",
            hint=f"columns: {', '.join(node.columns.names)}",
            where=caller() or node.where,
        )
    return node.columns.field(name)
