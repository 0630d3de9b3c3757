"""The work of a reader task in an epoch: its records go through the stateless steps, and to their shards or straight to the outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from headrace.core import failpoints
from headrace.engine.partition_shards import shard_of_partition
from headrace.engine.planning.epoch_plan import Range
from headrace.engine.route import Result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark import wire
from headrace.spark.counted_rows import Outbox
from headrace.spark.job import Job
from headrace.spark.workers.worker import settle
from headrace.spark.writing import Writing


def batch_of(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int], place: tuple[int, int]) -> pa.RecordBatch:
    """The result of the records of some ranges; `place` is the number of the task that reads them, and how many there are."""
    settle()
    outbox = Outbox(job.program.shards, job.packet_files)
    results = ingested(job, ranges, time, limits)
    lines = [line for home, result in results.items() for line in outbox.lines(result.packets, result.accounting, time, home)]
    return wire.batch([*lines, *outbox.beats(time, *place)])


def write_where_read(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int], task: int) -> None:
    """Write the results of some ranges in the name of the task that has their shards."""
    settle()
    writing = Writing(job, task)
    for result in ingested(job, ranges, time, limits).values():
        writing.take(result.packets, result.accounting, time.epoch)
    writing.finish()


def ingested(job: Job, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int]) -> dict[int, Result]:
    """The records of some ranges after the stateless steps, by the shard that their counts belong to."""
    failpoints.reach("source.read.before")
    parts: dict[tuple[int | None, str], list[Range]] = defaultdict(list)
    for part in ranges:
        home = shard_of_partition(part.source, part.partition, job.program.shards) if job.program.by_partition else None
        parts[home, part.source].append(part)
    results: dict[int, Result] = defaultdict(Result)
    for (home, name), mine in sorted(parts.items()):
        batches = [batch for part in mine for batch in job.inputs[name].read(part.partition, part.first, part.last)]
        if batches:
            # In one piece: senders of single records make a batch of each, and polars looks at each piece of each column.
            records = pl.from_arrow(pa.Table.from_batches(batches).combine_chunks())
            assert isinstance(records, pl.DataFrame)
            result, total = job.program.ingest(name, records, time, limits[name], home), results[home or 0]
            total.packets += result.packets
            total.accounting.merge(result.accounting)
    failpoints.reach("source.read.after")
    return results
