"""The stages of an epoch in several tasks, for a query that plans each batch by itself: what batches share is made once.

The functions of the stages are sent to Spark when they are first used. Sending them again for each batch took longer than planning it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.util import PythonEvalType

from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.placement import PLACE, place_of
from headrace.spark.schema import DDL
from headrace.spark.stage import Stage
from headrace.spark.writing import Written

# Its types know only the kinds of functions that users declare.
_declared: Any = pandas_udf


class StagesOfTasks:
    """The stages of a job without steps that Spark evaluates, on this machine."""

    def __init__(self, spark: SparkSession, job: Job, checkpoint: Path) -> None:
        self._spark, self._job = spark, job
        self._place = place_of(job.program.shards, job.tasks)
        self._keeping, self._leaving = (_levels(job, checkpoint, keeps=keeps) for keeps in (True, False))

    def after(self, rows: DataFrame, keeps: bool) -> DataFrame:
        """What is left of the rows of a source after all stages: nothing. With `keeps`, workers have the state in memory afterwards."""
        for stage in self._keeping if keeps else self._leaving:
            met = rows.withColumn(PLACE, self._place).repartition(self._job.tasks, PLACE)
            rows = stage.after(self._spark, met)
        return rows


class _Sent:
    """A stage that is sent to Spark once."""

    def __init__(self, stage: Stage, workers: str | None) -> None:
        self._workers = workers
        self._function = _declared(stage, returnType=DDL, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        self._columns = [sql.col(name) for name in (*wire.SCHEMA.names, PLACE)]

    def after(self, spark: SparkSession, rows: DataFrame) -> DataFrame:
        with workers_apart(spark.sparkContext, self._workers) if self._workers else nullcontext():
            column = self._function(*self._columns)
        # As `mapInArrow` does, which sends its function each time.
        return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)  # noqa: SLF001


def _levels(job: Job, checkpoint: Path, *, keeps: bool) -> list[_Sent]:
    levels = job.program.levels
    if not levels:
        return [_Sent(Written(job, alone=False), None)]
    numbers = range(1, levels + 1)
    return [_Sent(Level(job, number, checkpoint, writes=number == levels, keeps=keeps), level_workers(number)) for number in numbers]


def level_workers(number: int) -> str:
    """The name of the Python processes of a level."""
    return f"level {number}"


@contextmanager
def workers_apart(context: SparkContext, kind: str) -> Iterator[None]:
    """A stage declared here has Python processes of its own, so that no other task keeps it from the state in their memory.

    Spark has a separate daemon for each environment.
    """
    environment = context.environment
    environment["HEADRACE_WORKERS"] = kind
    try:
        yield
    finally:
        del environment["HEADRACE_WORKERS"]
