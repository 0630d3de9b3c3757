"""Fingerprints of the steps of a plan: what the state of each depends on, part by part.

A part is a field of a node, or what the step reads. Aggregates have fingerprints of their own, so that each is known whatever its name
and its place among others. What comes after the state, as the names of results, is no part of it.
"""

from __future__ import annotations

import dataclasses
from functools import singledispatchmethod
from typing import Any

from headrace.plan.aggregates.nodes import Aggregation
from headrace.plan.evolution.canonical import COMMON, canonical, digest
from headrace.plan.joins.remote_lookup import RemoteLookup
from headrace.plan.nodes import Node, Source, upstream
from headrace.plan.plan import Output, Plan, Sink
from headrace.plan.process import Process
from headrace.plan.side_streams import SideStream
from headrace.plan.steps import Transform

# Not part of what a node computes, or what it reads, which has a fingerprint itself.
_COMMON = COMMON | {"input", "streams", "source"}
# What may change while state is kept: from then on the new value counts.
TUNABLE = ("ttl",)
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
            kind = type(node).__name__
            self._known[node.name] = digest(
                kind, self.state(node), {name: getattr(node, name, None) for name in TUNABLE}, results, aggregates
            )
        return self._known[node.name]

    def state(self, node: Node) -> dict[str, str]:
        """What the state of a node depends on, by parts."""
        parts = {"kind": type(node).__name__} | {name: digest(value) for name, value in self._fields(node).items()}
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
        return parts | ({"target": output.does} if isinstance(output, Sink) else {})

    @singledispatchmethod
    def _fields(self, node: Node) -> dict[str, Any]:
        return {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.name not in {*_COMMON, *TUNABLE}}

    @_fields.register
    def _(self, node: Source) -> dict[str, Any]:
        """A topic, and the event time. Columns count where they are read; a record that lacks one which is not null is a dead letter."""
        needed = [field.name for field in node.columns if not field.nullable]
        from_elsewhere = None if node.connector is None else [node.connector, node.columns]
        time = None if node.time is None else node.time.typed
        return {"topic": node.name, "time": time, "not null": needed, "source": from_elsewhere}

    @_fields.register
    def _(self, node: Process) -> dict[str, Any]:
        """What the functions keep; their code may change."""
        called = [node.logic.vectorized, node.logic.on_timer is not None]
        return {"by": node.by, "state": node.state, "order": node.order, "logic": called, "returns": node.columns}

    @_fields.register
    def _(self, node: RemoteLookup) -> dict[str, Any]:
        """What is asked for; the code that asks may change, and how it is called."""
        return {"on": node.on, "returns": node.returns, "how": node.how}

    @_fields.register
    def _(self, node: Transform) -> dict[str, Any]:
        return {"returns": node.columns}

    @_fields.register
    def _(self, node: Aggregation) -> dict[str, Any]:
        fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        keys = [node.input.columns.field(name) for name in node.by]
        kept = {name: value for name, value in fields.items() if name not in {*_COMMON, *TUNABLE, "calls", "outputs"}}
        return kept | {"by": [[field.name, field.type] for field in keys]}

    @_fields.register
    def _(self, node: SideStream) -> dict[str, Any]:
        """Late records and dead letters come from all steps of a stream."""
        beyond = self._plan.beyond_side_streams
        steps = [
            one for one in self._plan.nodes if one.name not in beyond and node.source.name in {before.name for before in upstream(one)}
        ]
        return {"topic": node.name, "columns": node.columns, "steps": sorted([one.name, self.records(one)] for one in steps)}
