"""Aggregates of windows and groups, built from Spark SQL texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.columns.names import Names
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.plan.aggregates.checked import aggregation
from headrace.plan.aggregates.nodes import PANE_COLUMNS, GroupAggregate, TypedCall, WindowAggregate
from headrace.plan.building.keyed import time_to_live
from headrace.plan.building.step_place import StepPlace, refuse_twice, typed_field
from headrace.plan.nodes import NamedExpression
from headrace.plan.windows.emit import ON_TIME, Emit
from headrace.plan.windows.kinds import Window

Texts = Mapping[str, str]
_Checked = tuple[tuple[TypedCall, ...], tuple[NamedExpression, ...], list[pa.Field]]


def window_key(after: StepPlace, window: Any, by: Names) -> tuple[str, ...]:
    """The key of windows over a node, which must have a watermark unless the wall clock closes them."""
    if not hasattr(window, "identity"):
        raise after.refused(f"window({window!r}) is not a window", hint='say which kind: hr.tumbling("1 minute")')
    if not after.node.watermarked and not window.by_clock:
        raise after.refused(
            f"{after.node.name!r} has windows but no watermark",
            why="no window would ever close",
            hint='declare the stream with time= and watermark=hr.bounded("30 seconds")',
        )
    return after.columns_of(by, "window by")


def group_key(after: StepPlace, by: Names, ttl: Duration | None) -> tuple[tuple[str, ...], timedelta | None]:
    """The key of groups, and how long each is kept."""
    length = time_to_live(after, ttl, f"group({by!r})")
    names = after.columns_of(by, "group by")
    if not names:
        raise after.refused(
            f"group() of {after.node.name!r} has no key",
            hint='for one total of everything: window(hr.global_()), with emit(early="1 second")',
        )
    return names, length


def window_aggregate(after: StepPlace, window: Window, by: tuple[str, ...], texts: Texts, name: str | None) -> WindowAggregate:
    calls, outputs, results = _checked(after, texts)
    columns = pa.schema([*_key(after, by), *window.columns, *results, *PANE_COLUMNS])
    refuse_twice(columns, after.at)
    return WindowAggregate(after.called("window", name), columns, after.at, after.node, by, calls, outputs, window)


def group_aggregate(
    after: StepPlace, key: tuple[tuple[str, ...], timedelta | None], texts: Texts, name: str | None = None
) -> GroupAggregate:
    by, ttl = key
    calls, outputs, results = _checked(after, texts)
    columns = pa.schema([*_key(after, by), *results])
    refuse_twice(columns, after.at)
    return GroupAggregate(after.called("group", name), columns, after.at, after.node, by, calls, outputs, ttl)


def refuse_unnamed(unnamed: tuple[str, ...], at: str | None) -> None:
    """A result without a name could not be read by any step."""
    if unnamed:
        raise PlanError(f"agg({unnamed[0]!r}) has no name for its result", hint=f'name it: agg(n="{unnamed[0]}")', where=at)


def emitting(node: WindowAggregate, emit: Emit, at: str | None) -> WindowAggregate:
    """The same windows with other panes; it is said once."""
    if node.emit is not ON_TIME:
        raise PlanError(
            f"emit() of {node.name!r} a second time",
            why="it would undo the first",
            hint='say everything in one: emit(early="5 seconds", until="1 hour")',
            where=at,
        )
    return replace(node, emit=emit)


def late_panes(late: Duration | None, until: Duration | None, at: str | None) -> tuple[timedelta, timedelta]:
    """How often late records are shown, and how long they are accepted."""
    if until is None and late not in ("each", None):
        raise PlanError(f"late={late!r} without until=", why="no late record would be accepted", hint='give until="1 hour" too', where=at)
    if until is not None and late is None:
        raise PlanError("late=None with until=", why="late records would be accepted and never emitted", hint="leave one out", where=at)
    nothing = timedelta(0)
    return nothing if late is None or late == "each" else duration(late), nothing if until is None else duration(until)


def _checked(after: StepPlace, texts: Texts) -> _Checked:
    calls, outputs = aggregation(texts, after.columns, after.at, after.names.aggregates)
    return calls, outputs, [typed_field(output.name, output.expression, texts[output.name], after.at) for output in outputs]


def _key(after: StepPlace, by: tuple[str, ...]) -> list[pa.Field]:
    return [after.columns.field(name) for name in by]
