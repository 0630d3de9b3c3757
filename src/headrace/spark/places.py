"""Which task of Spark's has which shard: shard s is always with task s modulo their number.

Spark hashes what it groups by, and would give one of two tasks five shards of eight. So shards are grouped by numbers whose hashes
fall evenly; a task that writes to as many partitions as there are tasks has only one of them to write to.
"""

from __future__ import annotations

from functools import cache
from itertools import count

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

PLACE = "place"
_WORD = 0xFFFFFFFF
_SEED = 42


def placed(rows: DataFrame, shards: int) -> DataFrame:
    """Rows with the number to group them by."""
    numbers = sql.array(*(sql.lit(number) for number in places(shards)))
    return rows.withColumn(PLACE, sql.element_at(numbers, sql.col("shard") + 1))


@cache
def places(shards: int) -> tuple[int, ...]:
    """For each shard a number that Spark puts into that very partition of so many, and so into the right one of any divisor of them."""
    found: dict[int, int] = {}
    for number in count():
        found.setdefault(hash_of(number) % shards, number)
        if len(found) == shards:
            return tuple(found[shard] for shard in range(shards))
    raise AssertionError("numbers do not end")


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
