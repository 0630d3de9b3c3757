"""Packets as rows of a Spark DataFrame: the only form in which data crosses Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.blob import encode
from headrace.spark.packet_files import PacketFiles, taken

SCHEMA = pa.schema([
    ("shard", pa.int32()), ("target", pa.string()), ("kind", pa.string()), ("port", pa.string()), ("epoch", pa.int64()),
    ("before", pa.int64()), ("after", pa.int64()), ("idle", pa.bool_()),
    ("clock_before", pa.int64()), ("clock", pa.int64()), ("blob", pa.binary()),
])  # fmt: skip
# Rows that are not packets: a beat tells a shard that time moved, and how many rows a sender had for it; counts carry the accounting.
BEAT, COUNTS = "#beat", "#counts"


# A batch of rows is also one Arrow value: this much, in a few packets, stays far below two gigabytes.
LARGEST = 128 << 20


class Fields(Protocol):
    """A row as it arrives: its fields by name."""

    def __getitem__(self, name: str, /) -> Any: ...


Line = tuple[int, str, str, str, int, int, int, bool, int, int, bytes]


def lines(packets: Iterable[Packet], accounting: Accounting, time: EpochTime, home: int, files: PacketFiles | None) -> list[Line]:
    """The output of a stage: its packets, the large ones in files if there can be files, and its counts under the shard `home`."""
    put = encode if files is None else files.put
    made = [(packet.shard, packet.target, packet.kind, packet.port, put(part)) for packet in packets for part in _parts(packet.frame)]
    counts = accounting.entries()
    if counts:
        made.append((home, COUNTS, "", "", json.dumps(counts).encode()))
    return [(shard, target, kind, port, *_moment(time), blob) for shard, target, kind, port, blob in made]


def beat(shard: int, sender: str, rows: int, time: EpochTime) -> Line:
    """The last row of a sender to a shard; `rows` is the number of rows before it."""
    return (shard, BEAT, sender, "", *_moment(time), str(rows).encode())


def line(row: Fields) -> Line:
    """A row that arrived, as one to send on."""
    shard, target, kind, port, epoch, before, after, idle, clock_before, clock, blob = (row[name] for name in SCHEMA.names)
    return shard, target, kind, port, epoch, before, after, idle, clock_before, clock, blob


def batch(made: list[Line]) -> pa.RecordBatch:
    """Lines as the columns that Spark takes from a reader."""
    columns = zip(*made, strict=True) if made else [()] * len(SCHEMA)
    return pa.RecordBatch.from_arrays([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def packets(arrived: Iterable[Fields]) -> Iterator[Packet]:
    """The packets among rows."""
    for row in arrived:
        if not row["target"].startswith("#"):
            yield Packet(row["target"], row["shard"], taken(bytes(row["blob"])), row["kind"], row["port"])


def _parts(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """A frame in pieces, none so large that its blob could reach the two gigabytes that a column of Spark can have."""
    count = -(-int(frame.estimated_size()) // LARGEST)
    return frame.iter_slices(max(-(-frame.height // count), 1)) if count > 1 else iter((frame,))


def _moment(time: EpochTime) -> tuple[int, int, int, bool, int, int]:
    return time.epoch, time.before, time.after, time.idle, time.clock_before, time.clock


def time_of(row: Fields) -> EpochTime:
    return EpochTime(row["epoch"], row["before"], row["after"], row["idle"], row["clock_before"], row["clock"])
