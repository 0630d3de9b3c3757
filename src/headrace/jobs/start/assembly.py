"""Assembly of a plan and the record of its job to what Spark runs."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connectors.input import Input
from headrace.core.durations import microseconds
from headrace.jobs.directory import Record
from headrace.jobs.evolution.versions import program_of
from headrace.jobs.start.outputs import outputs_of
from headrace.log import Log
from headrace.plan.plan import Plan
from headrace.plan.waits import waits
from headrace.spark.job import Job, Packed
from headrace.spark.timed_inputs import input_of


@dataclass(frozen=True)
class Bounds:
    """The size of an epoch in each stream: a number of records, and about a number of bytes of a topic; None is no limit.

    `seconds` is how long an epoch should take: one that takes longer lets the next take in fewer records.
    """

    rows: int | None = None
    bytes: int | None = None
    seconds: float = 10.0
    quick: int = 0
    """The largest number of records of an epoch that runs in one task; 0 if none does."""


UNBOUNDED = Bounds()


def job_of(  # noqa: PLR0913 - one option for each thing a run is given
    plan: Plan, record: Record, log: Log, *, until: str | None, bounds: Bounds = UNBOUNDED, epoch: int = 0
) -> Job:
    """The job of a plan on a log, of which an epoch is the last committed one; its wall clock is the log's."""
    return Job(
        id=record.id,
        name=plan.name,
        packed=Packed(program_of(plan, record, epoch)),
        inputs=inputs_of(plan, log, bounds.bytes),
        watermarks={source.name: source.watermark for source in plan.sources},
        outputs=outputs_of(log, plan),
        keys={output.name: output.folds_by for output in plan.outputs},
        tasks=record.tasks,
        rows_per_epoch=bounds.rows,
        epoch_seconds=bounds.seconds,
        quick_rows=bounds.quick,
        until=until,
        clock=log.clock,
        layout=record.layout,
        begins=max(record.begins.values(), default=0),
        aligned={source.name: microseconds(source.align) for source in plan.sources if source.align is not None},
        waits=waits(plan.nodes),
    )


def inputs_of(plan: Plan, log: Log, epoch_bytes: int | None = None) -> dict[str, Input]:
    """All inputs of a job of the plan, by the names of its streams."""
    return {source.name: input_of(source, plan.name, log.path, epoch_bytes) for source in plan.sources}
