"""The steps of a plan that compute aggregates: per window, and per key over everything so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa

from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.expressions import Typed
from headrace.plan.nodes import FactsOnly, NamedExpression, StateSummary, Step
from headrace.plan.tables.latest import RowPerKey
from headrace.plan.windows.emit import ACCUMULATING, DISCARDING, ON_TIME, RETRACTING, Emit
from headrace.plan.windows.kinds import Window

PANE_COLUMNS = (pa.field("pane", pa.string()), pa.field("revision", pa.int32()))

_TICK = timedelta(microseconds=1)

Options = tuple[bool | int | float, ...]


@dataclass(frozen=True)
class TypedCall:
    """One aggregate call of an aggregation: the arguments are typed over the input's columns, `options` are constants.

    `own` computes it if it is the user's; `written` is the call as the user wrote it.
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
    counts_each: ClassVar[bool] = True

    by: tuple[str, ...]
    calls: tuple[TypedCall, ...]
    outputs: tuple[NamedExpression, ...]

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.by

    @property
    def aggregates(self) -> tuple[TypedCall, ...]:
        return self.calls

    @property
    def state_parts(self) -> dict[str, Any]:
        """The key and the window. Each aggregate has a fingerprint of its own, whatever its name and its place among others."""
        kept = {name: value for name, value in super().state_parts.items() if name not in ("calls", "outputs")}
        return kept | {"by": [[key.name, key.type] for key in map(self.input.columns.field, self.by)]}

    @property
    def expressions(self) -> Iterator[Typed]:
        for call in self.calls:
            yield from call.arguments
            yield from () if call.filter is None else (call.filter,)

    @property
    def results(self) -> tuple[NamedExpression, ...]:
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
        apart = ("revision",) if self.again and self.emit.mode == DISCARDING else ()
        return (*self.by, *self.window.identity, *apart)

    @property
    def windowing(self) -> Window:
        return self.window

    @property
    def panes(self) -> Emit:
        return self.emit

    @property
    def again(self) -> bool:
        """Whether a window may emit several panes: by its own triggers, or because results of an earlier step arrive late."""
        corrected = self.kept > timedelta(0) and self.window.corrected
        return self.emit.again or corrected

    @property
    def changes(self) -> bool:
        return super().changes or (self.again and self.emit.mode == RETRACTING)

    @property
    def watermarked(self) -> bool:
        """Results of the wall clock have no event time."""
        return super().watermarked and not self.window.by_clock

    @property
    def waits(self) -> bool:
        return not self.window.by_clock

    @property
    def endless(self) -> bool:
        return self.window.endless

    @property
    def facts_only(self) -> FactsOnly | None:
        return self.window.facts_only

    @property
    def restates(self) -> bool:
        """Whether panes repeat the content of others, which stay."""
        return self.again and self.emit.mode == ACCUMULATING

    @property
    def lateness(self) -> timedelta:
        return super().lateness + self.emit.until

    @property
    def kept(self) -> timedelta:
        """How long after its end a window is kept: corrections of an earlier step are late by as much as that one allows."""
        return self.emit.until + self.input.lateness

    @property
    def settles(self) -> timedelta | None:
        """The time of a result is the last moment of its window; that of a global window is its last record."""
        return None if self.window.endless else self.kept + _TICK

    @property
    def gathers(self) -> bool:
        """A window that begins or ends with a record needs each of them."""
        return self.window.positional

    @property
    def does(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.window}{by}: {self.computes}{self.emit}"

    @property
    def state_summary(self) -> StateSummary:
        return self.window.state_summary(self.kept, self.emit)


@dataclass(frozen=True)
class GroupAggregate(RowPerKey, Aggregation):
    """Aggregates per key over everything so far: a table."""

    totals: ClassVar[bool] = True

    @property
    def does(self) -> str:
        return f"group by {', '.join(self.by)}: {self.computes}"
