"""Fingerprints of the steps of a plan: what the state of each depends on, part by part.

A part is a field of a node, or what the step reads. Aggregates have fingerprints of their own, so that each is known whatever its name
and its place among others. What comes after the state, as the names of results, is no part of it.
"""

from __future__ import annotations

from typing import Any

from headrace.plan.evolution.canonical import canonical, digest
from headrace.plan.nodes import TUNABLE, Node, upstream
from headrace.plan.plan import Output, Plan

READS, COLUMNS = "input", "columns"


class Fingerprints:
    """The fingerprints of all nodes of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[str, str] = {}

    def records(self, node: Node) -> str:
        """What the records of a node are: the same fingerprint, the same records from the same input."""
        if node.name not in self._known:
            results = sorted(canonical([result.name, result.expression]) for result in node.results)
            aggregates = sorted(call.placeholder for call in node.aggregates)
            kind, tunable = type(node).__name__, {name: getattr(node, name, None) for name in TUNABLE}
            self._known[node.name] = digest(kind, self.state(node), tunable, results, aggregates, node.result_parts)
        return self._known[node.name]

    def state(self, node: Node) -> dict[str, str]:
        """What the state of a node depends on, by parts."""
        parts = {"kind": type(node).__name__} | {name: digest(value) for name, value in self._parts(node).items()}
        if node.inputs:
            parts[READS] = digest([self.records(before) for before in node.inputs], list(node.ports))
        if node.stateful and not node.aggregates:
            # It keeps whole records, in the order of their columns.
            parts[COLUMNS] = digest([before.columns for before in node.inputs])
        return parts

    def code(self, node: Node) -> str:
        """The code of the user's functions that a node and all before it call; empty if there are none."""
        known = {one.name: one.functions for one in upstream(node) if one.functions}
        return digest([list(functions) for functions in known.values()]) if known else ""

    def output(self, output: Output) -> dict[str, str]:
        """What an output shows, by parts."""
        parts = {READS: self.records(output.node), "key": digest(output.folds_by), COLUMNS: digest(output.node.columns)}
        return parts | ({"target": output.does} if output.kind == "sink" else {})

    def _parts(self, node: Node) -> dict[str, Any]:
        if node.side_of is None:
            return node.state_parts
        # Late records and dead letters come from all steps of a stream.
        steps = [[step.name, self.records(step)] for step in self._plan.feeding_sides_of(node.side_of)]
        return {"topic": node.name, "columns": node.columns, "steps": sorted(steps)}
