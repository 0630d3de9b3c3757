"""Views and sinks, built from a node and the key by which their rows replace each other."""

from __future__ import annotations

from typing import Any

from headrace.core.columns.names import Names, listed
from headrace.plan.building.step_place import StepPlace
from headrace.plan.nodes import Node, column, told_apart
from headrace.plan.plan import Sink, View
from headrace.plan.sinks import check_target, folding_key
from headrace.plan.tables.latest import ToTable


def view(after: StepPlace, name: str, key: Names) -> View:
    """A view by its own key, or else by that of the results."""
    keys = listed(key) or after.node.keys
    if not keys:
        raise after.refused(
            f"view {name!r}: nothing tells the records of {after.node.name!r} apart",
            why="a view has one row per key",
            hint=told_apart(after.node) if after.node.changes else 'give it key="...": the view then has the latest record of each key',
        )
    for part in keys:
        column(after.node, part, f"key of view {name!r}")
    return View(name, _latest(after, keys), keys)


def sink(after: StepPlace, target: Any, name: str | None) -> Sink:
    if name is not None and not isinstance(name, str):
        raise after.refused(f"a sink to {target} is called {name!r}", hint='give a text: name="alerts"')
    called = name or after.called("sink")
    checked = check_target(called, after.node, target, after.at)
    key = folding_key(after.node, checked)
    return Sink(called, _latest(after, key) if key else after.node, checked)


def _latest(after: StepPlace, key: tuple[str, ...]) -> Node:
    """The node itself if each of its rows has its own key; otherwise the latest record of each key."""
    if after.node.keys and set(after.node.keys) <= set(key):
        return after.node
    # Records of one key are on many shards: one shard must decide which is the latest.
    return ToTable(after.called("table"), after.columns, after.at, after.node, None, key)
