"""What a reader task does in an epoch: its records through the steps without state, packed for the shards they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from headrace.operators.accounting import Accounting
from headrace.operators.time import EpochTime
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.share import Range
from headrace.spark.worker import settle


def batch_of(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int], *, beats: bool) -> pa.RecordBatch:
    """All that the records of some ranges become; with `beats`, every shard is told that time moved."""
    settle()
    packets, accounting = [], Accounting()
    for name in sorted({part.source for part in ranges}):
        mine = [part for part in ranges if part.source == name]
        batches = [batch for part in mine for batch in job.inputs[name].read(part.partition, part.first, part.last)]
        if batches:
            records = pl.from_arrow(pa.Table.from_batches(batches))
            assert isinstance(records, pl.DataFrame)
            result = job.program.ingest(name, records, time, limits[name])
            packets += result.packets
            accounting.unite(result.accounting)
    return wire.batch(wire.lines(packets, accounting, range(job.program.shards) if beats else (), time, 0))
