"""A job without a JVM: the planner and the inputs that a job on Spark has, with its program in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pyarrow as pa

import headrace as hr
from headrace.core.clock import Clock
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.spark.source import JobReader
from headrace.testing.conformance.reading import Batches, InputReading


class InProcess(InputReading):
    """Plans, reads and takes in one epoch after the other, as Spark does; a new one goes on from the epoch of another."""

    def __init__(self, app: hr.App, clock: Clock, *, reached: EpochPlan | None = None, until: str | None = None) -> None:
        job = job_of(app.plan(), Record(f"{app.name}-1", 2, 2, ""), app.log, until=until)
        super().__init__(replace(job, clock=clock), reached)
        self.driver = hr.TestDriver(app)

    def restart(self, until: str | None = None) -> None:
        """Crash, and go on from the offset and the state that are stored."""
        self.job = replace(self.job, until=until)
        self.reader = JobReader(self.job)
        self.driver.restart()

    def take_in(self, plan: EpochPlan, batches: Mapping[str, list[pa.RecordBatch]]) -> None:
        """Let the program run an epoch, and the planner know that it is done."""
        self.driver.replay({name: _frame(found) for name, found in batches.items()}, plan.time(self.reached), plan.limits)
        self.commit(plan)

    def epoch(self, rows: int | None = None) -> Batches | None:
        """Plan, read and take in one epoch; its records, None if there was nothing to do."""
        end = self.plan(rows)
        if end is None:
            return None
        batches = self.read(end)
        self.take_in(end, batches)
        return batches

    def catch_up(self) -> None:
        while self.epoch() is not None:
            pass


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    return frame
