"""The tasks of shards: each task has a contiguous range of them, and so of key groups.

Spark hashes what it groups by, and would give one of two tasks five shards of eight. So shards are grouped by numbers whose hashes
fall evenly. A view has as many partitions as its job began with tasks: each is a range of key groups, and has one writer as long as
the number of tasks is a multiple of it.
"""

from __future__ import annotations

from functools import cache
from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from headrace.spark.counted_rows import task_of

PLACE = "place"
_WORD = 0xFFFFFFFF
_SEED = 42


def placed(rows: DataFrame, shards: int, tasks: int) -> DataFrame:
    """Rows with the number to group them by."""
    return rows.withColumn(PLACE, place_of(shards, tasks))


def place_of(shards: int, tasks: int) -> Column:
    """The number by which a row is grouped."""
    numbers = sql.array(*(sql.lit(number) for number in places(shards, tasks)))
    return sql.element_at(numbers, sql.col("shard") + 1)


@cache
def places(shards: int, tasks: int) -> tuple[int, ...]:
    """For each shard a number of its own that Spark puts into the partition of its task."""
    numbers, found = count(), list[int]()
    waiting: dict[int, list[int]] = {task: [] for task in range(tasks)}
    for shard in range(shards):
        task = task_of(shard, tasks, shards)
        while not waiting[task]:
            number = next(numbers)
            waiting[hash_of(number) % tasks].append(number)
        found.append(waiting[task].pop(0))
    return tuple(found)


def hash_of(number: int) -> int:
    """Spark's hash of an int: Murmur3, as a signed number of 32 bits."""
    mixed = _rotated(number * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    state = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _WORD
    state ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
