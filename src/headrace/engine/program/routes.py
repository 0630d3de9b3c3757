"""The routes of records between sources, operators and sinks: fused steps, and cuts where Spark evaluates one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.core.columns.schema import quoted, type_name
from headrace.core.errors import PlanError
from headrace.engine.packet import Exit
from headrace.engine.program.exchange import exchange_name
from headrace.engine.program.flow import Flow
from headrace.engine.program.spark_step import SparkStep
from headrace.engine.program.stateless_steps import Project, steps_of
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.nodes import Node, Source
from headrace.plan.plan import Plan, ReadingStep


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
        for step, port in self._plan.steps_after(node):
            if node.side_of is not None:
                _refuse_spark(node, step)
            if step.frame_function is not None:
                exits.append(self._transform(node, step, way))
            elif remote := _unfused(step):
                exits.append(self._evaluate(node, ReadingStep(step, port), remote, way))
            elif step.stateful:
                exits.append(Exit(step.name, port))
            else:
                branches.append(self._through(step, way))
        outputs = self._plan.outputs_after(node)
        exits += [Exit(exchange_name(output) if output.name in self._exchanged else output.name) for output in outputs]
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
            name=f"{node.name}/results",
            step=f"{node.name}.results",
            origin=source_of(node),
            level=level_of(self._plan, node),
            columns=columns,
            flow=flow,
            expressions=remote,
            where=node.where,
        )
        return tuple(columns.names), Flow((), (Exit(self._keep(cut, Way(node))),))

    def _through(self, node: Node, way: Way) -> Flow:
        behind = self.after(node, way)
        return Flow((*steps_of(node), *behind.steps), behind.exits, behind.branches)

    def _evaluate(self, node: Node, reads: ReadingStep, remote: tuple[Typed, ...], way: Way) -> Exit:
        reader, port = reads
        flow = Flow((), (Exit(reader.name, port),)) if reader.stateful else self._through(reader, replace(way, cuts=way.cuts + 1))
        cut = SparkStep(
            name=f"{way.start.name}/{reader.name}{f'/{port}' if port else ''}",
            step=reader.name,
            origin=source_of(way.start),
            level=level_of(self._plan, way.start),
            columns=node.columns,
            flow=flow,
            expressions=remote,
            where=reader.where,
        )
        return Exit(self._keep(cut, way))

    def _transform(self, node: Node, reader: Node, way: Way) -> Exit:
        assert way.start.declared_stream is not None, "a transform follows a step with state"
        _refuse_without_time(reader, way.start.declared_stream)
        flow = self.after(reader, replace(way, cuts=way.cuts + 1))
        cut = SparkStep(
            name=f"{way.start.name}/{reader.name}",
            step=reader.name,
            origin=way.start.name,
            level=0,
            columns=node.columns,
            flow=flow,
            function=reader.frame_function,
            made=reader.columns,
            where=reader.where,
        )
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


def _refuse_without_time(reader: Node, source: Source) -> None:
    """The results of a function have their event time in the same column as the records of the stream."""
    read = () if source.time is None else source.time.columns
    for field in (source.columns.field(name) for name in read):
        place = reader.columns.get_field_index(field.name)
        if place < 0 or not reader.columns.field(place).type.equals(field.type):
            raise PlanError(
                f"transform {reader.name!r} has no column {field.name!r} of type {type_name(field.type)}, from which the event time of "
                f"{source.name!r} is computed",
                why="the results of its function would have no event time",
                hint=f"keep {field.name!r} in the steps before it and in its result",
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
        return max((level_of(plan, step) for step in plan.feeding_sides_of(node.side_of)), default=0)
    return max((level_of(plan, before) for before in node.inputs), default=0) + (node.stateful and not node.colocated_with)


def source_of(node: Node) -> str:
    """The first of the sources that a node's records come from."""
    while not node.declared_stream:
        node = node.inputs[0]
    return node.name
