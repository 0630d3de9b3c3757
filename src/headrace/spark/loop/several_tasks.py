"""An epoch in several tasks of Spark: readers, then a stage for each level.

Spark plans each epoch again. The functions of the stages are sent to Spark when they are first used: sending them again for each epoch took
longer than planning it.
"""

from __future__ import annotations

import base64
import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.util import PythonEvalType

from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.placement import PLACE, place_of
from headrace.spark.read_shares import shares_of
from headrace.spark.reading import batch_of, write_where_read
from headrace.spark.schema import DDL
from headrace.spark.stage import Stage, task_number
from headrace.spark.workers.apart import level_workers, workers_apart
from headrace.spark.writing import Written

# The property of Spark's jobs that tells readers their ranges.
_RANGES = "headrace.ranges"
# Its types know only the kinds of functions that users declare.
_declared: Any = pandas_udf


class SeveralTasks:
    """Runs epochs of a job without steps that Spark evaluates, on this machine."""

    def __init__(self, spark: SparkSession, job: Job, checkpoint: Path) -> None:
        self._spark, self._job = spark, job
        self._place = place_of(job.program.shards, job.tasks)
        self._reading = _Sent(Reading(job), ["id"], None)
        self._keeping, self._leaving = (_levels(job, checkpoint, keeps=keeps) for keeps in (True, False))

    def run(self, plan: EpochPlan, before: EpochPlan, *, keeps: bool) -> None:
        """Run the epoch after another one. With `keeps`, workers have the state in memory afterwards."""
        shares = shares_of(self._job, plan.ranges(before))
        ranges = base64.b64encode(pickle.dumps((shares, plan.time(before), plan.limits))).decode()
        self._spark.sparkContext.setLocalProperty(_RANGES, ranges)
        rows = self._reading.after(self._spark, self._spark.range(0, len(shares), 1, len(shares)))
        for stage in self._keeping if keeps else self._leaving:
            met = rows.withColumn(PLACE, self._place).repartition(self._job.tasks, PLACE)
            rows = stage.after(self._spark, met)
        # What Spark's own sinks do, without a plan of their own.
        rows._jdf.queryExecution().toRdd().count()  # noqa: SLF001


class Reading(Stage):
    """The readers of an epoch: each has one share of the ranges."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark ends a process that has not read all of its input.
        deque(batches, maxlen=0)
        context = TaskContext.get()
        told = None if context is None else context.getLocalProperty(_RANGES)
        assert told is not None, "a task of Spark that is told its ranges"
        shares, time, limits = pickle.loads(base64.b64decode(told))  # noqa: S301 - the driver of this job wrote it
        number = task_number()
        if self._job.writes_where_read:
            write_where_read(self._job, shares[number], time, limits, number)
        else:
            yield batch_of(self._job, shares[number], time, limits, (number, len(shares)))


class _Sent:
    """A stage that is sent to Spark once, with the columns that it takes."""

    def __init__(self, stage: Stage, columns: Sequence[str], workers: str | None) -> None:
        self._workers = workers
        self._function = _declared(stage, returnType=DDL, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        self._columns = [sql.col(name) for name in columns]

    def after(self, spark: SparkSession, rows: DataFrame) -> DataFrame:
        with workers_apart(spark.sparkContext, self._workers) if self._workers else nullcontext():
            column = self._function(*self._columns)
        # As `mapInArrow` does, which sends its function each time.
        return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)  # noqa: SLF001


def _levels(job: Job, checkpoint: Path, *, keeps: bool) -> list[_Sent]:
    levels, columns = job.program.levels, [*wire.SCHEMA.names, PLACE]
    if job.writes_where_read:
        return []
    if not levels:
        return [_Sent(Written(job, alone=False), columns, None)]
    numbers = range(1, levels + 1)
    return [
        _Sent(Level(job, number, checkpoint, writes=number == levels, keeps=keeps), columns, level_workers(number)) for number in numbers
    ]
