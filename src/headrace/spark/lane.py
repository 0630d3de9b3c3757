"""The Arrow lane: a job as one Spark query, from its source over its levels to its sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.sink import job_sink
from headrace.spark.source import job_source


def start(spark: SparkSession, job: Job, checkpoint: Path) -> StreamingQuery:
    """Start a job, or go on with it where its checkpoint says it stopped."""
    spark.dataSource.register(job_source(job))
    spark.dataSource.register(job_sink(job))
    rows = spark.readStream.format("headrace").load()
    levels = job.program.levels
    for level in range(1, levels + 1):
        rows = rows.groupBy("shard").transformWithState(Level(job, level), wire.DDL, "append", "none")
    if not levels:
        # Several readers may hold records of one shard of a sink; its writer must be one.
        rows = rows.repartition("shard")
    writer = rows.writeStream.format("headrace-sink").outputMode("append").option("checkpointLocation", str(checkpoint)).queryName(job.name)
    return (writer.trigger(availableNow=True) if job.until else writer.trigger(processingTime="0 seconds")).start()
