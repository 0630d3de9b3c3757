"""The planner and the inputs of a job, without Spark: epochs are planned and read as tasks would."""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.spark.job import Job
from headrace.spark.source import JobReader, Offset

Batches = dict[str, list[pa.RecordBatch]]


class InputReading:
    """A job that plans and reads one epoch after the other; a new one continues from the epoch that another has reached, as after a
    crash."""

    def __init__(self, job: Job, reached: EpochPlan | None = None) -> None:
        self.job = job
        self.reader = JobReader(job)
        self.reached = EpochPlan.from_json(_stored(self.reader.initialOffset())) if reached is None else reached

    def plan(self, rows: int | None = None) -> EpochPlan | None:
        """The next epoch, as Spark returns it; None if there is nothing to do."""
        limit: ReadLimit = ReadAllAvailable() if rows is None else ReadMaxRows(rows)
        found = EpochPlan.from_json(_stored(self.reader.latestOffset(self.reached.to_json(), limit)))
        return None if found == self.reached else found

    def read(self, plan: EpochPlan) -> Batches:
        """The records of an epoch, by source, in the order of each partition."""
        found: Batches = {}
        for task in self.reader.partitions(self.reached.to_json(), plan.to_json()):
            for part in task.value[1]:
                found.setdefault(part.source, []).extend(self.job.inputs[part.source].read(part.partition, part.first, part.last))
        return {name: batches for name, batches in found.items() if batches}

    def commit(self, plan: EpochPlan) -> None:
        """Mark an epoch as done."""
        self.reached = plan
        self.reader.commit(plan.to_json())


def _stored(offset: Offset) -> Offset:
    """An offset as Spark stores it."""
    found: Offset = json.loads(json.dumps(offset))
    return found
