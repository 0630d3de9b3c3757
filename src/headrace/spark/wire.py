"""Packets as rows of a Spark DataFrame: the only form in which data crosses Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from headrace.operators.accounting import Accounting
from headrace.operators.blob import decode, encode
from headrace.operators.packet import Packet
from headrace.operators.passage import Result
from headrace.operators.time import EpochTime

SCHEMA = pa.schema([
    ("shard", pa.int32()), ("target", pa.string()), ("kind", pa.string()), ("epoch", pa.int64()),
    ("before", pa.int64()), ("after", pa.int64()), ("idle", pa.bool_()),
    ("clock_before", pa.int64()), ("clock", pa.int64()), ("blob", pa.binary()),
])  # fmt: skip
# Rows that are no packets: a beat tells every shard of every level that time moved; counts carry the accounting.
BEAT, COUNTS = "#beat", "#counts"


class Fields(Protocol):
    """A row as it arrives: its fields by name."""

    def __getitem__(self, name: str, /) -> Any: ...


Line = tuple[int, str, str, int, int, int, bool, int, int, bytes]


def lines(packets: Iterable[Packet], accounting: Accounting, beats: Iterable[int], time: EpochTime, home: int) -> list[Line]:
    """What a stage hands on: its packets, its counts under the shard `home`, and a beat for each shard named."""
    made = [(packet.shard, packet.target, packet.kind, encode(packet.frame)) for packet in packets]
    counts = accounting.entries()
    if counts:
        made.append((home, COUNTS, "", json.dumps(counts).encode()))
    made += [(shard, BEAT, "", b"") for shard in beats]
    moment = (time.epoch, time.before, time.after, time.idle, time.clock_before, time.clock)
    return [(shard, target, kind, *moment, blob) for shard, target, kind, blob in made]


def line(row: Fields) -> Line:
    """A row that arrived as one to hand on."""
    shard, target, kind, epoch, before, after, idle, clock_before, clock, blob = (row[name] for name in SCHEMA.names)
    return shard, target, kind, epoch, before, after, idle, clock_before, clock, blob


def batch(made: list[Line]) -> pa.RecordBatch:
    """Lines as the columns that Spark takes from a reader."""
    columns = zip(*made, strict=True) if made else [()] * len(SCHEMA)
    return pa.RecordBatch.from_arrays([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def handed_on(result: Result, time: EpochTime, home: int) -> pa.RecordBatch:
    """What a stage hands on that has no beats to give."""
    return batch(lines(result.packets, result.accounting, (), time, home))


def packets(arrived: Iterable[Fields]) -> Iterator[Packet]:
    """The packets among rows."""
    for row in arrived:
        if not row["target"].startswith("#"):
            yield Packet(row["target"], row["shard"], decode(row["blob"]), row["kind"])


def time_of(row: Fields) -> EpochTime:
    return EpochTime(row["epoch"], row["before"], row["after"], row["idle"], row["clock_before"], row["clock"])
