"""A rerun: an output of an app computed again from the records in its streams, in this process, by the engine of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from headrace.core.durations import microseconds
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.input import Input
from headrace.engine.planning.planner import PlannedStream, Planner
from headrace.engine.program.compiler import compiled
from headrace.engine.program.program import Program
from headrace.engine.runner import Runner
from headrace.jobs.start.assembly import inputs_of
from headrace.log import Log
from headrace.operators.changes import net_changes
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.nodes import Source
from headrace.plan.plan import Output, Plan
from headrace.plan.topics import dead_topic, late_topic
from headrace.plan.waits import waits

_ROWS = 20_000


@dataclass(frozen=True)
class Rerun:
    """What an output would have: its rows, and how many records were read, late, and could not be processed."""

    rows: pl.DataFrame
    columns: pa.Schema
    records: int
    late: int
    dead_letters: int


def rerun(plan: Plan, output: Output, log: Log, since: int | None = None) -> Rerun:
    """Compute an output over the records from `since` on, to the present end, as if the input ended there.

    Streams without event time, such as those of tables, are read from their beginning. Nothing is written.
    """
    alone = replace(plan, outputs=(output,), alerts=())
    program = compiled(alone, 1)
    for cut in program.cuts.values():
        raise cut.refuse_without_spark()
    inputs = inputs_of(alone, log)
    streams = {source.name: _stream(source, inputs[source.name]) for source in alone.sources}
    planner = Planner(alone.name, streams, program, waits(alone.nodes), until="end")
    return _Epochs(planner, program, output, log).run(_began(planner.first(), alone, log, since))


class _Epochs:
    """The epochs of a rerun, one after the other."""

    def __init__(self, planner: Planner, program: Program, output: Output, log: Log) -> None:
        self._planner, self._runner, self._output, self._now = planner, Runner(program), output, log.clock.now()
        self._frames: list[pl.DataFrame] = []
        self._sides: dict[str, int] = {}
        self._records = 0

    def run(self, first: EpochPlan) -> Rerun:
        plan, ends = first, self._planner.ends()
        while (following := self._planner.next(plan, self._now, _ROWS, ends)) is not plan:
            self._epoch(plan, following)
            plan = following
        sources = list(self._planner.streams)
        late, dead = (sum(self._sides.get(topic(name), 0) for name in sources) for topic in (late_topic, dead_topic))
        return Rerun(self._rows(), self._output.node.columns, self._records, late, dead)

    def _epoch(self, before: EpochPlan, plan: EpochPlan) -> None:
        batches: dict[str, list[pa.RecordBatch]] = {}
        for part in plan.ranges(before):
            batches.setdefault(part.source, []).extend(self._planner.inputs[part.source].read(part.partition, part.first, part.last))
        frames = {name: pl.DataFrame(pa.Table.from_batches(found)) for name, found in batches.items() if found}
        self._records += sum(frame.height for frame in frames.values())
        reached, _ = self._runner.epoch(frames, plan.time(before), plan.limits)
        for target, found in reached.items():
            if target == self._output.name:
                self._frames += found
            else:
                self._sides[target] = self._sides.get(target, 0) + sum(frame.height for frame in found)

    def _rows(self) -> pl.DataFrame:
        """The facts of the output, or the live rows of its keys."""
        columns = self._output.node.columns
        if not self._frames:
            return pl.DataFrame(schema={column.name: dtype(column.type) for column in columns})
        rows, removed = net_changes(pl.concat(self._frames, how="diagonal"), self._output.folds_by)
        return (rows if removed is None else rows.filter(~removed)).select(columns.names)


def _stream(source: Source, records: Input) -> PlannedStream:
    return PlannedStream(records, source.watermark, source.time, None if source.align is None else microseconds(source.align))


def _began(first: EpochPlan, plan: Plan, log: Log, since: int | None) -> EpochPlan:
    """Where a rerun begins: streams with event time at their first record of a time."""
    if since is None:
        return first
    positions: dict[str, Mapping[int, int]] = dict(first.positions)
    for source in plan.sources:
        if source.connector is None and source.time is not None and source.time.column is not None:
            found, topic = log.offsets_for_time(source.name, since), log.topic(source.name)
            positions[source.name] = {
                index: log.partition(topic, index).state().visible if offset is None else offset for index, offset in found.items()
            }
    return replace(first, positions=positions)
