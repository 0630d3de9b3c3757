"""The routes of records between sources, operators and sinks: fused steps, and cuts where Spark evaluates one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa

from headrace.core.columns.schema import quoted, type_name
from headrace.core.errors import PlanError
from headrace.engine.packet import Exit
from headrace.engine.program.exchange import exchange_name
from headrace.engine.program.flow import ChangesAsFacts, Flow, Project, Scores, Sieve, Step, Unnest
from headrace.engine.program.spark_step import SparkStep
from headrace.operators.scoring import Scoring
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.nodes import Node, Source, upstream
from headrace.plan.plan import NodeReader, Plan
from headrace.plan.scoring import Score
from headrace.plan.steps import Explode, KeyBy, Select, ToStream, Transform, Union, Where


@dataclass(frozen=True)
class Way:
    """The origin of records: a source or an operator, and the number of cuts already behind them."""

    start: Node
    cuts: int = 0


class Routes:
    """Follows a plan from each source and operator, and collects the cuts on the way."""

    def __init__(self, plan: Plan, exchanged: Collection[str] = ()) -> None:
        self._plan = plan
        self._exchanged = exchanged
        self._cuts: dict[str, tuple[int, SparkStep]] = {}

    @property
    def cuts(self) -> dict[str, SparkStep]:
        """All cuts, each after those whose records it gets."""
        ordered = sorted(self._cuts.values(), key=lambda found: (found[1].level, found[0]))
        return {cut.name: cut for _, cut in ordered}

    def after(self, node: Node, way: Way) -> Flow:
        """The steps that the records of a node go through until the next operator, sink or cut."""
        exits, branches = [], []
        for reader, port in self._plan.readers(node):
            if node.side_of is not None and isinstance(reader, Node):
                _refuse_spark(node, reader)
            if isinstance(reader, Transform):
                exits.append(self._transform(node, reader, way))
            elif isinstance(reader, Node) and (remote := _unfused(reader)):
                exits.append(self._evaluate(node, NodeReader(reader, port), remote, way))
            elif not isinstance(reader, Node):
                exits.append(Exit(exchange_name(reader) if reader.name in self._exchanged else reader.name))
            elif reader.stateful:
                exits.append(Exit(reader.name, port))
            else:
                branches.append(self._through(reader, way))
        if len(branches) == 1 and not exits:
            return branches[0]
        return Flow((), tuple(exits), tuple(branches))

    def results(self, node: Node) -> tuple[tuple[str, ...], Flow]:
        """Results whose last expressions Spark evaluates: their input columns, and the way to them."""
        named = {result.name: result.expression for result in node.results}
        columns = pa.schema([*(field for field in node.columns if field.name not in named), *node.placeholders])
        shown = tuple((name, named.get(name) or check(parse(quoted(name), node.where), columns)) for name in node.columns.names)
        behind = self.after(node, Way(node, 1))
        flow = Flow((Project(f"{node.name}.results", shown), *behind.steps), behind.exits, behind.branches)
        remote = tuple(typed for typed in named.values() if not typed.fused)
        cut = SparkStep(
            f"{node.name}/results",
            f"{node.name}.results",
            source_of(node),
            level_of(self._plan, node),
            columns,
            flow,
            remote,
            where=node.where,
        )
        return tuple(columns.names), Flow((), (Exit(self._keep(cut, Way(node))),))

    def _through(self, node: Node, way: Way) -> Flow:
        behind = self.after(node, way)
        return Flow((*_steps(node), *behind.steps), behind.exits, behind.branches)

    def _evaluate(self, node: Node, reads: NodeReader, remote: tuple[Typed, ...], way: Way) -> Exit:
        reader, port = reads
        assert isinstance(reader, Node)
        flow = Flow((), (Exit(reader.name, port),)) if reader.stateful else self._through(reader, replace(way, cuts=way.cuts + 1))
        name = f"{way.start.name}/{reader.name}{f'/{port}' if port else ''}"
        cut = SparkStep(
            name, reader.name, source_of(way.start), level_of(self._plan, way.start), node.columns, flow, remote, where=reader.where
        )
        return Exit(self._keep(cut, way))

    def _transform(self, node: Node, reader: Transform, way: Way) -> Exit:
        assert isinstance(way.start, Source), "a transform follows a step with state"
        _refuse_without_time(reader, way.start)
        flow = self.after(reader, replace(way, cuts=way.cuts + 1))
        name = f"{way.start.name}/{reader.name}"
        source = way.start.name
        cut = SparkStep(name, reader.name, source, 0, node.columns, flow, (), reader.function, reader.columns, reader.where)
        return Exit(self._keep(cut, way))

    def _keep(self, cut: SparkStep, way: Way) -> str:
        depth = max(way.cuts, self._cuts[cut.name][0] if cut.name in self._cuts else 0)
        self._cuts[cut.name] = (depth, cut)
        return cut.name


def _refuse_spark(side: Node, reader: Node) -> None:
    if reader.opaque or _unfused(reader):
        raise PlanError(
            f"{reader.name!r} lets Spark evaluate {side.name!r}",
            why="late records and dead letters are found while Spark's steps run, and cannot go back to them in the same epoch",
            hint="use expressions that need no Spark, or read the topic in a second app",
            where=reader.where,
        )


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
    return (ChangesAsFacts(node.name, node.input.keys),)


@_steps.register
def _(node: Score) -> tuple[Step, ...]:
    return (Scores(node.name, Scoring(node.model, node.taken, node.output)),)


@_steps.register
def _(_: KeyBy | Union) -> tuple[Step, ...]:
    return ()


def _refuse_without_time(reader: Transform, source: Source) -> None:
    """The results of a function have their event time in the same column as the records of the stream."""
    read = () if source.time is None else source.time.columns
    for field in (source.columns.field(name) for name in read):
        place = reader.columns.get_field_index(field.name)
        if place < 0 or not reader.columns.field(place).type.equals(field.type):
            raise PlanError(
                f"transform {reader.name!r} has no column {field.name!r} of type {type_name(field.type)}, of which the event time of "
                f"{source.name!r} is made",
                why="what its function makes would belong to no time",
                hint=f"keep {field.name!r} in the steps before it and in what it makes",
                where=reader.where,
            )


def _unfused(reader: Node) -> tuple[Typed, ...]:
    """The expressions over a step's input that only Spark evaluates, each once."""
    found = {typed.expression.text: typed for typed in reader.expressions if not typed.fused}
    return tuple(found.values())


def level_of(plan: Plan, node: Node) -> int:
    """The number of operators that a record passes, up to and including this one.

    Late records and dead letters of a stream come from all its steps, so that their level is that of the last one.
    """
    if node.side_of is not None:
        beyond = plan.beyond_side_streams
        stream = node.side_of.name
        feeding = [other for other in plan.nodes if other.name not in beyond and stream in {before.name for before in upstream(other)}]
        return max((level_of(plan, other) for other in feeding), default=0)
    return max((level_of(plan, before) for before in node.inputs), default=0) + (node.stateful and not node.colocated_with)


def source_of(node: Node) -> str:
    """The first of the sources that a node's records come from."""
    while not node.declared:
        node = node.inputs[0]
    return node.name
