"""The work of a reader task in an epoch: its records go through the stateless steps and are packed for their shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from headrace.core import failpoints
from headrace.engine.planning.epoch_plan import Range
from headrace.engine.route import Result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark import wire
from headrace.spark.counted_rows import Outbox
from headrace.spark.job import Job
from headrace.spark.workers.worker import settle


def batch_of(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int], place: tuple[int, int]) -> pa.RecordBatch:
    """The result of the records of some ranges; `place` is the number of the task that reads them, and how many there are."""
    settle()
    result = ingested(job, ranges, time, limits)
    outbox = Outbox(job.program.shards)
    return wire.batch([*outbox.lines(result.packets, result.accounting, time, 0), *outbox.beats(time, *place)])


def ingested(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int]) -> Result:
    """The records of some ranges after the stateless steps."""
    failpoints.reach("source.read.before")
    total = Result()
    for name in sorted({part.source for part in ranges}):
        mine = [part for part in ranges if part.source == name]
        batches = [batch for part in mine for batch in job.inputs[name].read(part.partition, part.first, part.last)]
        if batches:
            # In one piece: senders of single records make a batch of each, and polars looks at each piece of each column.
            records = pl.from_arrow(pa.Table.from_batches(batches).combine_chunks())
            assert isinstance(records, pl.DataFrame)
            result = job.program.ingest(name, records, time, limits[name])
            total.packets += result.packets
            total.accounting.merge(result.accounting)
    failpoints.reach("source.read.after")
    return total
