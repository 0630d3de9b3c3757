"""From a plan to a program."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from headrace.core.errors import PlanError
from headrace.operators.aggregate import Aggregate
from headrace.operators.aggregates import FUNCTIONS
from headrace.operators.candidates import CandidateSpec
from headrace.operators.exits import ALL, Entry, Spec
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.grouping import GroupSpec, TableSpec
from headrace.operators.panes import WindowSpec
from headrace.operators.program import Operator, Origin, Outlet, Program
from headrace.operators.routing import STATEFUL, Routes, Way, level_of, source_of
from headrace.operators.sessions import SessionSpec
from headrace.plan.expressions import Typed
from headrace.plan.nodes import (
    Call,
    GroupAggregate,
    Node,
    ToTable,
    WindowAggregate,
)
from headrace.plan.plan import Plan
from headrace.plan.windows import Hopping


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
        operators = {node.name: self._operator(node) for node in plan.nodes if isinstance(node, STATEFUL)}
        outlets = {
            output.name: Outlet(output.name, tuple(output.node.columns.names), getattr(output, "key", ())) for output in plan.outputs
        }
        return Program(plan.name, self._shards, origins, operators, outlets, self._routes.cuts)

    def _operator(self, node: Node) -> Operator:
        spec, inputs = self._spec(node)
        entry = Entry(node.name, spec, inputs)
        columns, outputs = tuple(node.columns.names), tuple((one.name, one.expression) for one in getattr(node, "outputs", ()))
        if isinstance(node, (WindowAggregate, GroupAggregate)) and not all(typed.fused for _, typed in outputs):
            columns, flow = self._routes.results(node)
            return Operator(entry, level_of(node), (), columns, flow, source_of(node))
        return Operator(entry, level_of(node), outputs, columns, self._routes.after(node, Way(node)), source_of(node))

    def _spec(self, node: Node) -> tuple[Spec, tuple[tuple[str, Typed], ...]]:
        if isinstance(node, ToTable):
            return self._table(node), ()
        assert isinstance(node, (WindowAggregate, GroupAggregate))
        aggregates, inputs = self._aggregates(node)
        by = node.by or (ALL,)
        if isinstance(node, GroupAggregate):
            return GroupSpec(by, aggregates, _micros(node.ttl)), inputs
        # Corrections of a step before this one come late by as much as that one allows: they must still find their window.
        until = int((node.emit.until + node.input.lateness) / timedelta(microseconds=1))
        window = node.window
        if isinstance(window, Hopping):
            return WindowSpec(_whole(window.size), _whole(window.hop), _whole(window.offset), by, aggregates, until), inputs
        return SessionSpec(_whole(window.gap), by, aggregates, until), inputs

    def _table(self, node: ToTable) -> Spec:
        own = node.input.keys
        if not node.input.changes or (own and set(own) <= set(node.key)):
            return TableSpec(node.key, _micros(node.ttl))
        if not own:
            raise PlanError(
                f"the latest of {node.input.name!r} by {', '.join(node.key)}: its records change, and nothing tells which one did",
                hint="keep the columns of its key in every step before it",
                where=node.where,
            )
        return CandidateSpec(node.key, own, _micros(node.ttl))

    def _aggregates(self, node: WindowAggregate | GroupAggregate) -> tuple[tuple[Aggregate, ...], tuple[tuple[str, Typed], ...]]:
        inputs: dict[str, Typed] = {}
        aggregates = []
        for call in node.calls:
            self._refuse_irrevocable(node, call)
            names = tuple(f"{call.placeholder}.{place}" for place in range(len(call.arguments)))
            inputs |= dict(zip(names, call.arguments, strict=True))
            condition = f"{call.placeholder}.filter" if call.filter is not None else None
            if condition is not None and call.filter is not None:
                inputs[condition] = call.filter
            aggregates.append(self._aggregate(call, names, condition, node.input.changes))
        return tuple(aggregates), tuple(inputs.items())

    def _aggregate(self, call: Call, names: tuple[str, ...], condition: str | None, signed: bool) -> Aggregate:
        given = call.arguments[-1].type if call.arguments else None
        taken = pl.Null() if given is None else dtype(given)
        text = f"{call.function}({', '.join(argument.expression.text for argument in call.arguments)})"
        return Aggregate(call.function, call.placeholder, names, condition, dtype(call.type), signed, taken, text)

    def _refuse_irrevocable(self, node: WindowAggregate | GroupAggregate, call: Call) -> None:
        if node.input.changes and not FUNCTIONS[call.function].invertible:
            raise PlanError(
                f"{call.function} over {node.input.name!r}, whose results change",
                why=f"a {call.function} that counted a result cannot take it out again when it is corrected",
                hint="use count, sum or avg, or leave out until= before it",
                where=node.where,
            )


def _whole(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


def _micros(value: timedelta | None) -> int | None:
    return None if value is None else _whole(value)
