"""The columns in which packets cross Spark, in Spark's own words."""

DDL = (
    "shard int, target string, kind string, epoch bigint, before bigint, after bigint, idle boolean, "
    "clock_before bigint, clock bigint, blob binary"
)
