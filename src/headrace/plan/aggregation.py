"""The steps of a plan that compute aggregates: per window, and per key over everything so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

import pyarrow as pa

from headrace.plan.clocked import ProcessingTime
from headrace.plan.emit import DISCARDING, ON_TIME, Emit
from headrace.plan.expressions import Typed
from headrace.plan.nodes import Memory, Named, Step
from headrace.plan.own import Aggregate
from headrace.plan.tables import row_a_key
from headrace.plan.windows import Count, Sliding, Window

PANE_COLUMNS = (pa.field("pane", pa.string()), pa.field("revision", pa.int32()))

Options = tuple[bool | int | float, ...]


@dataclass(frozen=True)
class Call:
    """One aggregate call of an aggregation: the arguments are typed over the input's columns, `options` are constants.

    `own` is what computes it where that is not Headrace; `written` is the call as the user wrote it.
    """

    function: str
    placeholder: str
    arguments: tuple[Typed, ...]
    filter: Typed | None
    type: pa.DataType
    options: Options = ()
    own: Aggregate | None = field(default=None, compare=False)
    written: str = field(default="", compare=False)

    def __str__(self) -> str:
        return " ".join(self.written.split())


@dataclass(frozen=True)
class Aggregation(Step):
    """Aggregates per key. The expressions of `outputs` are over the placeholders of the calls."""

    stateful: ClassVar[bool] = True

    by: tuple[str, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Named, ...]

    @property
    def expressions(self) -> Iterator[Typed]:
        for call in self.calls:
            yield from call.arguments
            yield from () if call.filter is None else (call.filter,)

    @property
    def results(self) -> tuple[Named, ...]:
        return self.outputs

    @property
    def placeholders(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(call.placeholder, call.type) for call in self.calls)

    @property
    def computes(self) -> str:
        """The aggregates as the user wrote them."""
        words = []
        for output in self.outputs:
            text = output.expression.words
            for call in self.calls:
                text = text.replace(f"`{call.placeholder}`", str(call))
            words.append(f"{text} as {output.name}")
        return ", ".join(words)


@dataclass(frozen=True)
class WindowAggregate(Aggregation):
    """Aggregates per window and key."""

    window: Window
    emit: Emit = ON_TIME

    @property
    def keys(self) -> tuple[str, ...]:
        apart = ("revision",) if self.emit.again and self.emit.mode == DISCARDING else ()
        return (*self.by, *self.window.identity, *apart)

    @property
    def changes(self) -> bool:
        return super().changes or self.emit.retracts

    @property
    def watermarked(self) -> bool:
        """Results of the wall clock have no event time."""
        return super().watermarked and not isinstance(self.window, ProcessingTime)

    @property
    def restates(self) -> bool:
        return self.emit.restates

    @property
    def lateness(self) -> timedelta:
        return super().lateness + self.emit.until

    @property
    def kept(self) -> timedelta:
        """How long after its end a window is kept: corrections of a step before it come late by as much as that one allows."""
        return self.emit.until + self.input.lateness

    @property
    def gathers(self) -> bool:
        """A window that begins or ends with a record needs each of them."""
        return isinstance(self.window, Sliding | Count)

    @property
    def does(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.window}{by}: {self.computes}{self.emit}"

    @property
    def memory(self) -> Memory:
        return self.window.memory(self.kept, self.emit)


@dataclass(frozen=True)
class GroupAggregate(Aggregation):
    """Aggregates per key over everything so far: a table. A key without records for `ttl` (event time) is forgotten."""

    ttl: timedelta | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.by

    @property
    def changes(self) -> bool:
        return True

    @property
    def does(self) -> str:
        return f"group by {', '.join(self.by)}: {self.computes}"

    @property
    def memory(self) -> Memory:
        return row_a_key(self.ttl)
