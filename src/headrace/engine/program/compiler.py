"""The compiler from a plan to a program."""

from __future__ import annotations

from dataclasses import replace

from headrace.engine.entry import Entry
from headrace.engine.packet import Exit
from headrace.engine.program.exchange import exchange_name, scattered
from headrace.engine.program.flow import Flow
from headrace.engine.program.program import Aside, Operator, Origin, Outlet, Program
from headrace.engine.program.routes import Routes, Way, level_of, source_of
from headrace.operators import kinds  # noqa: F401 - each kind registers its operator
from headrace.operators.contract import ONLY, Port, Upserting, operator_of
from headrace.operators.tables.meeting import MeetingSpec
from headrace.plan.nodes import Node
from headrace.plan.plan import Output, Plan


def compiled(plan: Plan, shards: int) -> Program:
    """The program of a plan over this many shards."""
    return _Compiler(plan, shards).program()


class _Compiler:
    def __init__(self, plan: Plan, shards: int) -> None:
        self._plan = plan
        self._shards = shards
        self._made = {node.name: operator_of(node) for node in plan.nodes if node.stateful}
        exchanged = [output for output in plan.outputs if scattered(output.node, output.folds_by, self._made)]
        self._exchanged = {output.name: output for output in exchanged}
        self._routes = Routes(plan, self._exchanged)

    def program(self) -> Program:
        plan = self._plan
        origins = {
            source.name: Origin(
                source.name, source.columns, source.time, self._routes.after(source, Way(source)), source.late != "drop",
                None if source.watermark is None else source.watermark.max_ahead,
            )
            for source in plan.sources
        }  # fmt: skip
        operators = {node.name: self._operator(node) for node in plan.nodes if node.stateful}
        operators |= {exchange_name(output): self._exchange(output) for output in self._exchanged.values()}
        outlets = {output.name: Outlet(output.name, tuple(output.node.columns.names), output.key) for output in plan.outputs}
        sides = {
            side.name: Aside(source.name, tuple(side.columns.names), self._routes.after(side, Way(side)))
            for side, source in plan.side_streams
        }
        return Program(plan.name, self._shards, origins, operators, outlets, self._routes.cuts, sides, plan.beyond_side_streams)

    def _operator(self, node: Node) -> Operator:
        made, level, source = self._made[node.name], level_of(self._plan, node), source_of(node)
        entries = {port: self._entry(node, port, declared) for port, declared in made.ports.items()}
        if not all(result.expression.fused for result in node.results):
            columns, flow = self._routes.results(node)
            return Operator(made.spec, entries, level, (), columns, flow, source, node.gathers)
        results = tuple((result.name, result.expression) for result in node.results)
        flow = self._routes.after(node, Way(node))
        columns = tuple(node.columns.names)
        operator = Operator(made.spec, entries, level, results, columns, flow, source, node.gathers, node.colocated_with)
        colocated = all(step.colocated_with for step, _ in self._plan.steps_after(node)) and not self._plan.outputs_after(node)
        if isinstance(made.spec, Upserting) and colocated:
            return replace(operator, spec=made.spec.with_upserts(), upserts=True)
        return operator

    def _entry(self, node: Node, name: str, port: Port) -> Entry:
        inputs = [before for before, taken in zip(node.inputs, node.ports, strict=True) if taken == name]
        signed = any(before.changes for before in inputs)
        return Entry(Exit(node.name, name), port, signed, any(scattered(before, before.keys, self._made) for before in inputs))

    def _exchange(self, output: Output) -> Operator:
        name, node = exchange_name(output), output.node
        spec = MeetingSpec(output.folds_by, upserts=True)
        entries = {ONLY: Entry(Exit(name), Port(spec), signed=True, scattered=True)}
        columns, flow = tuple(node.columns.names), Flow((), (Exit(output.name),))
        return Operator(spec, entries, level_of(self._plan, node) + 1, (), columns, flow, source_of(node))
