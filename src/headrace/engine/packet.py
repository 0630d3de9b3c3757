"""Packets between the stages of a job: records for one shard of an operator or sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.core.columns.keys import KEY_GROUPS, encode_keys, key_groups_of
from headrace.operators.frames import rows_at

# The kind of suspects is followed by the name of their source.
ROWS, SUSPECTS = "rows", "suspects of "


class Exit(NamedTuple):
    """The end of a flow: an operator at one of its ports, a sink, or a step that Spark evaluates."""

    target: str
    port: str = ""


@dataclass(frozen=True)
class Packet:
    """Records on their way to the shard of a target, and the port at which they enter it; `kind` distinguishes rows from suspects."""

    target: str
    shard: int
    frame: pl.DataFrame
    kind: str = ROWS
    port: str = ""


def sharded(exit_: Exit, frame: pl.DataFrame, by: tuple[str, ...], shards: int, kind: str = ROWS) -> list[Packet]:
    """Records as packets, each to the shard of its key; a null key has a shard like any other."""
    if shards == 1:
        return [Packet(exit_.target, 0, frame, kind, exit_.port)]
    return placed(exit_, frame, shards_of(frame, by, shards), shards, kind)


def placed(exit_: Exit, frame: pl.DataFrame, places: np.ndarray, shards: int, kind: str = ROWS) -> list[Packet]:
    """Records as packets, each to the shard at its place, in their order."""
    target, port = exit_
    order = np.argsort(places, kind="stable")
    arranged = rows_at(frame, order)
    ends = np.cumsum(np.bincount(places, minlength=shards)).tolist()
    return [
        Packet(target, shard, arranged[begin:end], kind, port)
        for shard, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
        if end > begin
    ]


def shards_of(frame: pl.DataFrame, by: tuple[str, ...], shards: int) -> np.ndarray:
    """The shard of each record. A shard has a contiguous range of key groups, so another number of shards moves whole groups."""
    columns = [_plain(frame.get_column(name)) for name in by]
    return key_groups_of(encode_keys(columns)) * shards // KEY_GROUPS


def _plain(series: pl.Series) -> pa.Array:
    array = series.to_arrow()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array.cast(pa.binary()) if pa.types.is_large_binary(array.type) or pa.types.is_binary_view(array.type) else array
