"""What travels between the stages of a job: records for one shard of an operator or sink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.core.keys import encode_keys, partitions_of

# Suspects come with the name of their source behind the word.
ROWS, SUSPECTS = "rows", "suspects of "


@dataclass(frozen=True)
class Packet:
    """Records on their way to the shard of a target; `kind` tells an operator's inputs apart."""

    target: str
    shard: int
    frame: pl.DataFrame
    kind: str = ROWS


def sharded(target: str, frame: pl.DataFrame, by: tuple[str, ...], shards: int, kind: str = ROWS) -> list[Packet]:
    """Records as packets, each to the shard of its key; a null key has a shard like any other."""
    if shards == 1:
        return [Packet(target, 0, frame, kind)]
    places = shards_of(frame, by, shards)
    order = np.argsort(places, kind="stable")
    arranged = frame[order]
    ends = np.cumsum(np.bincount(places, minlength=shards)).tolist()
    return [
        Packet(target, shard, arranged[begin:end], kind)
        for shard, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
        if end > begin
    ]


def shards_of(frame: pl.DataFrame, by: tuple[str, ...], shards: int) -> np.ndarray:
    """The shard of each record: where Kafka's partitioner would put its key among so many partitions."""
    columns = [_plain(frame.get_column(name)) for name in by]
    places = partitions_of(encode_keys(columns), shards)
    return np.where(places < 0, 0, places)


def _plain(series: pl.Series) -> pa.Array:
    array = series.to_arrow()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array.cast(pa.binary()) if pa.types.is_large_binary(array.type) or pa.types.is_binary_view(array.type) else array
