"""From a plan to a program."""

from __future__ import annotations

from dataclasses import replace

from headrace.operators import (  # noqa: F401 - each registers its operators
    candidates,
    clocked,
    counting,
    dedup,
    grouping,
    intervals,
    previous,
    process,
    sessions,
    sliding,
    top,
    windows,
)
from headrace.operators.contract import operator_of
from headrace.operators.entry import Entry
from headrace.operators.grouping import GroupSpec
from headrace.operators.program import Operator, Origin, Outlet, Program
from headrace.operators.routing import Routes, Way, level_of, source_of
from headrace.plan.aggregation import Aggregation
from headrace.plan.nodes import Node
from headrace.plan.plan import Plan


def compiled(plan: Plan, shards: int) -> Program:
    """The program of a plan over so many shards."""
    return _Compiler(plan, shards).program()


class _Compiler:
    def __init__(self, plan: Plan, shards: int) -> None:
        self._plan = plan
        self._shards = shards
        self._routes = Routes(plan)

    def program(self) -> Program:
        plan = self._plan
        origins = {
            source.name: Origin(source.name, source.columns, source.time, self._routes.after(source, Way(source)), source.late != "drop")
            for source in plan.sources
        }
        operators = {node.name: self._operator(node) for node in plan.nodes if node.stateful}
        outlets = {output.name: Outlet(output.name, tuple(output.node.columns.names), output.key) for output in plan.outputs}
        return Program(plan.name, self._shards, origins, operators, outlets, self._routes.cuts)

    def _operator(self, node: Node) -> Operator:
        signed = any(before.changes for before in node.inputs)
        entry, level, source = Entry(node.name, operator_of(node), signed), level_of(node), source_of(node)
        if not all(result.expression.fused for result in node.results):
            columns, flow = self._routes.results(node)
            return Operator(entry, level, (), columns, flow, source, node.gathers)
        results = tuple((result.name, result.expression) for result in node.results)
        flow = self._routes.after(node, Way(node))
        calls = tuple((call.placeholder, str(call)) for call in node.calls) if isinstance(node, Aggregation) else ()
        made = Operator(entry, level, results, tuple(node.columns.names), flow, source, node.gathers, node.beside, written=calls)
        followers = self._plan.readers(node)
        if isinstance(entry.spec, GroupSpec) and all(isinstance(reader, Node) and reader.beside for reader in followers):
            spec = replace(entry.spec, upserts=True)
            return replace(made, entry=replace(entry, made=replace(entry.made, spec=spec)), upserts=True)
        return made
