"""The ways that records take between sources, operators and sinks: fused steps, and cuts where Spark evaluates one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.schema import quoted
from headrace.operators.cut import Cut
from headrace.operators.flow import Facts, Flow, Project, Sieve, Step, Unnest
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.nodes import Node, Source
from headrace.plan.plan import Plan
from headrace.plan.steps import Explode, KeyBy, Select, ToStream, Transform, Union, Where


@dataclass(frozen=True)
class Way:
    """Where records come from: a source or an operator, and how many cuts lie behind them already."""

    start: Node
    cuts: int = 0


class Routes:
    """Follows a plan from each source and operator, and collects the cuts on the way."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cuts: dict[str, tuple[int, Cut]] = {}

    @property
    def cuts(self) -> dict[str, Cut]:
        """All cuts, in an order in which each comes after those whose records it gets."""
        ordered = sorted(self._cuts.values(), key=lambda found: (found[1].level, found[0]))
        return {cut.name: cut for _, cut in ordered}

    def after(self, node: Node, way: Way) -> Flow:
        """What the records of a node go through until the next operator, sink or cut."""
        exits, branches = [], []
        for reader in self._plan.readers(node):
            if isinstance(reader, Transform):
                exits.append(self._transform(node, reader, way))
            elif isinstance(reader, Node) and (remote := _unfused(reader)):
                exits.append(self._evaluate(node, reader, remote, way))
            elif not isinstance(reader, Node) or reader.stateful:
                exits.append(reader.name)
            else:
                branches.append(self._through(reader, way))
        if len(branches) == 1 and not exits:
            return branches[0]
        return Flow((), tuple(exits), tuple(branches))

    def results(self, node: Node) -> tuple[tuple[str, ...], Flow]:
        """Results whose last expressions Spark evaluates: the columns that go into them, and the way to them."""
        named = {result.name: result.expression for result in node.results}
        columns = pa.schema([*(field for field in node.columns if field.name not in named), *node.placeholders])
        shown = tuple((name, named.get(name) or check(parse(quoted(name), node.where), columns)) for name in node.columns.names)
        behind = self.after(node, Way(node, 1))
        flow = Flow((Project(f"{node.name}.results", shown), *behind.steps), behind.exits, behind.branches)
        remote = tuple(typed for typed in named.values() if not typed.fused)
        cut = Cut(f"{node.name}/results", f"{node.name}.results", source_of(node), level_of(node), columns, flow, remote, where=node.where)
        return tuple(columns.names), Flow((), (self._keep(cut, Way(node)),))

    def _through(self, node: Node, way: Way) -> Flow:
        behind = self.after(node, way)
        return Flow((*_steps(node), *behind.steps), behind.exits, behind.branches)

    def _evaluate(self, node: Node, reader: Node, remote: tuple[Typed, ...], way: Way) -> str:
        flow = Flow((), (reader.name,)) if reader.stateful else self._through(reader, replace(way, cuts=way.cuts + 1))
        name = f"{way.start.name}/{reader.name}"
        cut = Cut(name, reader.name, source_of(way.start), level_of(way.start), node.columns, flow, remote, where=reader.where)
        return self._keep(cut, way)

    def _transform(self, node: Node, reader: Transform, way: Way) -> str:
        if not isinstance(way.start, Source):
            raise PlanError(
                f"transform {reader.name!r} stands behind {way.start.name!r}, which gathers records",
                why="its function would see results that are taken back later as if they were new",
                hint=f"transform before {way.start.name!r}, or in a second app that reads the topic of a view",
                where=reader.where,
            )
        time = way.start.time
        if time is not None and (time not in reader.columns.names or not pa.types.is_timestamp(reader.columns.field(time).type)):
            raise PlanError(
                f"transform {reader.name!r} has no column {time!r}, the event time of {way.start.name!r}",
                why="what its function makes would belong to no time",
                hint=f"keep {time!r} in the steps before it and in what it makes",
                where=reader.where,
            )
        flow = self.after(reader, replace(way, cuts=way.cuts + 1))
        name = f"{way.start.name}/{reader.name}"
        source = way.start.name
        cut = Cut(name, reader.name, source, 0, node.columns, flow, (), reader.function, reader.columns, reader.where)
        return self._keep(cut, way)

    def _keep(self, cut: Cut, way: Way) -> str:
        depth = max(way.cuts, self._cuts[cut.name][0] if cut.name in self._cuts else 0)
        self._cuts[cut.name] = (depth, cut)
        return cut.name


@singledispatch
def _steps(node: Node) -> tuple[Step, ...]:
    raise TypeError(f"{type(node).__name__} is not a stateless step")


@_steps.register
def _(node: Where) -> tuple[Step, ...]:
    return (Sieve(node.name, node.condition),)


@_steps.register
def _(node: Select) -> tuple[Step, ...]:
    return (Project(node.name, node.made),)


@_steps.register
def _(node: Explode) -> tuple[Step, ...]:
    return (Unnest(node.name, node.array, node.into),)


@_steps.register
def _(node: ToStream) -> tuple[Step, ...]:
    return (Facts(node.name, node.input.keys),)


@_steps.register
def _(_: KeyBy | Union) -> tuple[Step, ...]:
    return ()


def _unfused(reader: Node) -> tuple[Typed, ...]:
    """The expressions over a step's input that only Spark evaluates, each once."""
    found = {typed.expression.text: typed for typed in reader.expressions if not typed.fused}
    return tuple(found.values())


def level_of(node: Node) -> int:
    """How many operators a record passes up to and including this one."""
    return max((level_of(before) for before in node.inputs), default=0) + (node.stateful and not node.beside)


def source_of(node: Node) -> str:
    """The first of the sources that a node's records come from."""
    while not isinstance(node, Source):
        node = node.inputs[0]
    return node.name
