"""Shards go to tasks as `places` promises, which is by Spark's own hash."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from headrace.spark.placement import PLACE, hash_of, placed


def test_the_hash_of_a_number_is_sparks(spark: SparkSession) -> None:
    numbers = spark.range(-500, 500).select(sql.col("id").cast("int").alias("number"))
    assert all(hash_of(row.number) == row.hash for row in numbers.withColumn("hash", sql.hash("number")).collect())


@pytest.mark.parametrize(("shards", "tasks"), [(4, 2), (12, 6), (7, 7), (6, 1)])
def test_every_shard_is_with_the_task_of_its_number(spark: SparkSession, shards: int, tasks: int) -> None:
    rows = placed(spark.range(shards).select(sql.col("id").cast("int").alias("shard")), shards, tasks)
    found = rows.repartition(tasks, PLACE).select("shard", sql.spark_partition_id().alias("task")).collect()
    assert {row.shard: row.task for row in found} == {shard: shard * tasks // shards for shard in range(shards)}
