"""Refusals of panes that a kind of window cannot emit."""

from __future__ import annotations

from headrace.core.errors import PlanError
from headrace.plan.nodes import Node, facts_first
from headrace.plan.windows.emit import Emit


def refuse_sessions_that_restate(node: Node) -> None:
    if node.windowing is not None and node.windowing.merges and node.restates:
        raise PlanError(
            f"accumulating panes of the sessions {node.name!r}",
            why="sessions grow and merge, and panes that are never retracted would stay next to those that replace them",
            hint='mode="retracting"',
            where=node.where,
        )


def refuse_panes_of_windows_that_have_one(node: Node) -> None:
    refused = None if node.windowing is None or node.panes is None else node.windowing.refused_panes(node.panes)
    if refused is not None:
        raise PlanError(f"emit of {node.name!r}: {refused.fact}", why=refused.why, hint=refused.hint, where=node.where)


def refuse_lateness_of_the_wall_clock(node: Node) -> None:
    emit = node.panes
    if node.windowing is None or emit is None or not node.windowing.by_clock:
        return
    changing = next((before for before in node.inputs if before.revises), None)
    if changing is not None:
        fact, why = f"over {changing.name!r}, whose results change", "a retraction comes at another time than what it retracts"
        hint = f"{facts_first(changing)}, or use windows in event time"
    elif emit != Emit(every=emit.every, mode=emit.mode):
        fact, why = "with early= or until=", "nothing is late by the wall clock, and nothing happens between two epochs"
        hint = "leave them out; every= and mode= may stay"
    elif any(call.function in ("first", "last") for call in node.aggregates):
        fact, why = "with first or last", "all records of an epoch come at one time, so none of them is the first"
        hint = "min_by(value, time) and max_by(value, time)"
    else:
        return
    raise PlanError(f"windows of processing time {fact}: {node.name!r}", why=why, hint=hint, where=node.where)
