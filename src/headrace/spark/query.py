"""A job at work on Spark: one streaming query on Arrow batches, from its source over its levels to its sink, or a loop of small epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.core.errors import PlanError
from headrace.engine.program.program import Program
from headrace.spark.evaluation import evaluated
from headrace.spark.job import Job
from headrace.spark.level import Level, PlacedLevel
from headrace.spark.loop.epoch_loop import EpochLoop
from headrace.spark.packet_files import EXCHANGE, PacketFiles
from headrace.spark.placement import PLACE, placed
from headrace.spark.read_shares import may_write_where_read
from headrace.spark.schema import DDL
from headrace.spark.session import on_cluster
from headrace.spark.source import job_source
from headrace.spark.transformation import transformed
from headrace.spark.workers.apart import level_workers, workers_apart
from headrace.spark.writing import Written

Query = StreamingQuery | EpochLoop
_SHARING = "spark.sql.subexpressionElimination.enabled"


def start(spark: SparkSession, job: Job, checkpoint: Path, keep_up: Callable[[int], None] = lambda _: None) -> Query:
    """Start a job, or continue it where its checkpoint says it stopped.

    The loop of small epochs calls `keep_up` with each committed epoch, and goes on when it returns.
    """
    job = replace(job, writes_where_read=may_write_where_read(job))
    if _in_tasks_of_ours(spark, job.program):
        files = PacketFiles(checkpoint / EXCHANGE)
        files.clear()
        job = replace(job, packet_files=files)
        if job.quick_rows:
            return EpochLoop(spark, job, checkpoint, keep_up).start()
    return _query(spark, replace(job, quick_rows=0), checkpoint)


def reports(query: Query) -> list[dict[str, Any]]:
    """The reports on the last epochs; of a query of Spark's only the last one: to ask it for all takes long."""
    if isinstance(query, EpochLoop):
        return query.recentProgress
    last = query.lastProgress
    return [] if last is None else [dict(last)]


def _query(spark: SparkSession, job: Job, checkpoint: Path) -> StreamingQuery:
    program = job.program
    spark.dataSource.register(job_source(job, checkpoint))
    rows = spark.readStream.format("headrace").load()
    # Everything is written at the end of the stages.
    writer = _stages(spark, rows, job, checkpoint).writeStream.format("noop")
    writer = writer.outputMode("append").option("checkpointLocation", str(checkpoint)).queryName(job.name)
    writer = writer.trigger(availableNow=True) if job.until else writer.trigger(processingTime="0 seconds")
    with _errors_apart(spark, needed=bool(program.cuts)):
        try:
            return writer.start()
        except AnalysisException as error:
            raise _refused(program, error) from error


def _in_tasks_of_ours(spark: SparkSession, program: Program) -> bool:
    """Whether all tasks of an epoch are ours, and on this machine: Spark evaluates no step. Only then can one task do everything."""
    return not program.cuts and not on_cluster(spark)


def _stages(spark: SparkSession, rows: DataFrame, job: Job, checkpoint: Path) -> DataFrame:
    """What is left of the rows of the source after all stages of an epoch: nothing."""
    if job.writes_where_read:
        return rows
    levels, program = job.program.levels, job.program
    cut_last = any(cut.level == levels for cut in program.cuts.values())
    rows = _cut(spark, rows, job, 0)
    for level in range(1, levels + 1):
        writes = level == levels and not cut_last
        rows = _level(spark, rows, Level(job, level, checkpoint, writes=writes))
        rows = _cut(spark, rows, job, level)
    if not levels:
        # Several readers may have records of one shard of a sink; it must have one writer.
        rows = _met(rows, job)
    if cut_last or not levels:
        rows = rows.mapInArrow(Written(job, alone=bool(levels)), DDL)
    return rows


def _level(spark: SparkSession, rows: DataFrame, level: Level) -> DataFrame:
    """The rows after a level."""
    if on_cluster(spark):
        return (
            placed(rows, level.job.program.shards, level.job.tasks)
            .groupBy(PLACE)
            .transformWithState(PlacedLevel(level), DDL, "append", "none")
        )
    with workers_apart(spark.sparkContext, level_workers(level.number)):
        return _met(rows, level.job).mapInArrow(level, DDL)


def _met(rows: DataFrame, job: Job) -> DataFrame:
    """The rows with each shard in one task. Their number is explicit: a repeated epoch must have the same tasks."""
    return placed(rows, job.program.shards, job.tasks).repartition(job.tasks, PLACE)


def _cut(spark: SparkSession, rows: DataFrame, job: Job, level: int) -> DataFrame:
    """The rows after the steps that Spark evaluates on this level."""
    shipped = job.program.shipped()
    here = [cut for cut in job.program.cuts.values() if cut.level == level]
    for transforms, cuts in groupby(here, key=lambda cut: cut.transforms):
        if transforms:
            for cut in cuts:
                rows = transformed(rows, shipped, cut, job.tasks)
        else:
            rows = evaluated(spark, rows, shipped, list(cuts))
    return rows


def _refused(program: Program, error: AnalysisException) -> Exception:
    """Only results of a user's function are unknown to us: without one, the error is our own."""
    functions = [cut for cut in program.cuts.values() if cut.transforms]
    if not functions:
        return error
    return PlanError(
        f"Spark refuses what the function of step {' or '.join(repr(cut.step) for cut in functions)} makes: {error}",
        hint="filter, select, explode and join with tables at rest in it; aggregate with window(...) or group(...) behind it",
        where=functions[0].where,
    )


@contextmanager
def _errors_apart(spark: SparkSession, *, needed: bool) -> Iterator[None]:
    """A query started here computes no common part of two expressions ahead of both: an error in it would stop the whole job."""
    before = spark.conf.get(_SHARING)
    if needed:
        spark.conf.set(_SHARING, "false")
    try:
        yield
    finally:
        spark.conf.set(_SHARING, str(before))
