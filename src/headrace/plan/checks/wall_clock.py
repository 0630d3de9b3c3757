"""Refused panes, which a kind of window cannot emit."""

from __future__ import annotations

from headrace.core.errors import PlanError
from headrace.plan.aggregates.nodes import WindowAggregate
from headrace.plan.nodes import Node
from headrace.plan.windows.emit import Emit
from headrace.plan.windows.kinds import Count, Sliding


def refuse_sessions_that_restate(node: Node) -> None:
    if isinstance(node, WindowAggregate) and node.window.merges and node.restates:
        raise PlanError(
            f"accumulating panes of the sessions {node.name!r}",
            why="sessions grow and merge, and panes that are never retracted would stay next to those that replace them",
            hint='mode="retracting"',
            where=node.where,
        )


def refuse_panes_of_windows_that_have_one(node: Node) -> None:
    if not isinstance(node, WindowAggregate):
        return
    emit = node.emit
    if isinstance(node.window, Sliding) and emit != Emit(until=emit.until):
        fact, why = "a sliding window has no early pane", "it ends with an event, and what comes late replaces its pane"
        hint = "emit(until=...) alone"
    elif isinstance(node.window, Count) and emit.again:
        fact, why = "a count window emits when it is full", "the places in it are given away then"
        hint = "leave out emit(...)"
    else:
        return
    raise PlanError(f"emit of {node.name!r}: {fact}", why=why, hint=hint, where=node.where)


def refuse_lateness_of_the_wall_clock(node: Node) -> None:
    if not isinstance(node, WindowAggregate) or not node.window.by_clock:
        return
    if node.input.changes or node.input.restates:
        fact, why = f"over {node.input.name!r}, whose results change", "a retraction comes at another time than what it retracts"
        hint = "take the changes as facts first: .to_stream(), or use windows in event time"
    elif node.emit != Emit(every=node.emit.every, mode=node.emit.mode):
        fact, why = "with early= or until=", "nothing is late by the wall clock, and nothing happens between two epochs"
        hint = "leave them out; every= and mode= may stay"
    elif any(call.function in ("first", "last") for call in node.calls):
        fact, why = "with first or last", "all records of an epoch come at one time, so none of them is the first"
        hint = "min_by(value, time) and max_by(value, time)"
    else:
        return
    raise PlanError(f"windows of processing time {fact}: {node.name!r}", why=why, hint=hint, where=node.where)
