"""The shard of a partition of a source: where records without a key are written, in the order of their partition."""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np
import polars as pl

_GOLDEN = (5**0.5 - 1) / 2


def shards_of_partitions(source: str, partitions: pl.Series, shards: int) -> np.ndarray:
    """The shard of each record of a source, by its partition. Sources begin at different shards: most have few partitions."""
    numbers = partitions.cast(pl.Int64).to_numpy() + zlib.crc32(source.encode())
    places: np.ndarray = _apart(shards)[numbers % shards]
    return places


def shard_of_partition(source: str, partition: int, shards: int) -> int:
    """The shard of all records of a partition."""
    return int(shards_of_partitions(source, pl.Series([partition]), shards)[0])


@cache
def _apart(shards: int) -> np.ndarray:
    """All shards, in an order in which neighbors are far apart: a task has shards in a row, and partitions are to be in several tasks.

    >>> _apart(8)
    array([0, 5, 2, 7, 4, 1, 6, 3])
    """
    return np.argsort(np.argsort(np.arange(shards) * _GOLDEN % 1))
