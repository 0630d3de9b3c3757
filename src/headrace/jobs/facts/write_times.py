"""The write times of a job's last epochs: for each output the slowest task, next to the duration of the whole epoch."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from headrace.checkpoint.journal import moments_of
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.facts.accounting import entries_in, readable
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.tail import Tail, tail
from headrace.plan.topics import accounting_topic

# Entries of the last epochs: one for each step and task.
_NEWEST = 2_000
_EPOCHS = 20


@dataclass(frozen=True)
class WriteTime:
    """How long an epoch took to write to an output, and from its plan to its commit, in seconds."""

    output: str
    epoch: int
    seconds: float
    epoch_seconds: float


def last_writes(log: Log, place: JobDirectory, record: Record) -> list[WriteTime]:
    """The writes of the last committed epochs that wrote something."""
    name = accounting_topic(place.name)
    try:
        tables = list(tail(log, name, Tail(last=_NEWEST, columns=tuple(readable(log.topic(name))))))
    except UnknownTopic:
        return []
    if not tables:
        return []
    entries = entries_in(pa.concat_tables(tables), record.id).drop_nulls("write_micros")
    slowest = entries.group_by("epoch", "step").agg(pl.col("write_micros").max()).sort("epoch", "step")
    last = slowest.filter(pl.col("epoch") > place.committed_epoch() - _EPOCHS)
    found = []
    for epoch, step, micros in last.rows():
        try:
            planned, committed = moments_of(place.checkpoint, epoch)
        except FileNotFoundError:
            continue
        found.append(WriteTime(step, epoch, micros / 1_000_000, max(0.0, committed - planned)))
    return found
