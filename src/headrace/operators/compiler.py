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
from headrace.operators.flow import Facts, Flow, Project, Sieve, Step, Unnest
from headrace.operators.grouping import GroupSpec, TableSpec
from headrace.operators.panes import WindowSpec
from headrace.operators.program import Operator, Origin, Outlet, Program
from headrace.operators.sessions import SessionSpec
from headrace.plan.expressions import Typed
from headrace.plan.nodes import (
    Call,
    Explode,
    GroupAggregate,
    KeyBy,
    Node,
    Select,
    Source,
    ToStream,
    ToTable,
    Transform,
    Union,
    Where,
    WindowAggregate,
)
from headrace.plan.plan import Plan
from headrace.plan.windows import Hopping

_STATEFUL = (WindowAggregate, GroupAggregate, ToTable)


def compiled(plan: Plan, shards: int) -> Program:
    """The program of a plan over so many shards."""
    return _Compiler(plan, shards).program()


class _Compiler:
    def __init__(self, plan: Plan, shards: int) -> None:
        self._plan = plan
        self._shards = shards

    def program(self) -> Program:
        plan = self._plan
        origins = {
            source.name: Origin(source.name, source.columns, source.time, self._flow_after(source), source.late != "drop")
            for source in plan.sources
        }
        operators = {node.name: self._operator(node) for node in plan.nodes if isinstance(node, _STATEFUL)}
        outlets = {
            output.name: Outlet(output.name, tuple(output.node.columns.names), getattr(output, "key", ())) for output in plan.outputs
        }
        return Program(plan.name, self._shards, origins, operators, outlets)

    def _flow_after(self, node: Node) -> Flow:
        """What the records of a node go through until the next operator or sink."""
        exits, branches = [], []
        for reader in self._plan.readers(node):
            if not isinstance(reader, Node) or isinstance(reader, _STATEFUL):
                exits.append(reader.name)
            else:
                behind = self._flow_after(reader)
                branches.append(Flow((*self._steps(reader), *behind.steps), behind.exits, behind.branches))
        if len(branches) == 1 and not exits:
            return branches[0]
        return Flow((), tuple(exits), tuple(branches))

    def _steps(self, node: Node) -> tuple[Step, ...]:
        if isinstance(node, Where):
            return (Sieve(node.name, self._fused(node.condition)),)
        if isinstance(node, Select):
            return (Project(node.name, tuple((name, self._fused(typed)) for name, typed in node.expressions)),)
        if isinstance(node, Explode):
            return (Unnest(node.name, self._fused(node.expression), node.into),)
        if isinstance(node, (KeyBy, Union)):
            return ()
        if isinstance(node, ToStream):
            return (Facts(node.name, node.input.keys),)
        if isinstance(node, Transform):
            raise PlanError(f"step {node.name!r} needs Spark", why="its function takes a PySpark DataFrame", where=node.where)
        raise TypeError(f"{type(node).__name__} is not a stateless step")

    def _fused(self, typed: Typed) -> Typed:
        if not typed.fused:
            raise PlanError(f"{typed.expression.text!r} is evaluated by Spark", why=typed.reason, where=typed.expression.where)
        return typed

    def _operator(self, node: Node) -> Operator:
        spec, inputs = self._spec(node)
        outputs = tuple((output.name, self._fused(output.expression)) for output in getattr(node, "outputs", ()))
        entry = Entry(node.name, spec, inputs)
        return Operator(entry, self._level(node), outputs, tuple(node.columns.names), self._flow_after(node), self._origin(node))

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
            inputs |= {name: self._fused(argument) for name, argument in zip(names, call.arguments, strict=True)}
            condition = f"{call.placeholder}.filter" if call.filter is not None else None
            if condition is not None and call.filter is not None:
                inputs[condition] = self._fused(call.filter)
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

    def _level(self, node: Node) -> int:
        """How many operators a record passes up to and including this one."""
        return max((self._level(before) for before in node.inputs), default=0) + isinstance(node, _STATEFUL)

    def _origin(self, node: Node) -> str:
        while not isinstance(node, Source):
            node = node.inputs[0]
        return node.name


def _whole(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


def _micros(value: timedelta | None) -> int | None:
    return None if value is None else _whole(value)
