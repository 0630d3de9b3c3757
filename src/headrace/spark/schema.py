"""The columns in which packets cross Spark, as Spark's types."""

DDL = (
    "shard int, target string, kind string, port string, epoch bigint, before bigint, after bigint, idle boolean, "
    "clock_before bigint, clock bigint, blob binary"
)
