"""Shares of readers: the records of an epoch, divided into shares of about the same size, or by the tasks that write them."""

from __future__ import annotations

from headrace.engine.partition_shards import shard_of_partition
from headrace.engine.planning.epoch_plan import Range
from headrace.spark.counted_rows import task_of
from headrace.spark.job import Job


def shares_of(job: Job, ranges: list[Range]) -> list[list[Range]]:
    """The ranges of each reader of an epoch."""
    if not job.writes_where_read:
        return balanced(ranges, job.tasks)
    shares: list[list[Range]] = [[] for _ in range(job.tasks)]
    for part in ranges:
        shares[_writer_of(job, part.source, part.partition)].append(part)
    return shares


def may_write_where_read(job: Job) -> bool:
    """Whether readers can write by themselves, and all of them have something to do: each source has partitions for every task.

    Otherwise a partition would have one core. Either way, a record has the same writer.
    """
    if not job.program.by_partition:
        return False
    spread = ({_writer_of(job, source, partition) for partition in end} for source, end in job.planner().ends().items())
    return all(len(writers) == job.tasks for writers in spread)


def _writer_of(job: Job, source: str, partition: int) -> int:
    """The task that writes the records of a partition."""
    shards = job.program.shards
    return task_of(shard_of_partition(source, partition, shards), job.tasks, shards)


def balanced(ranges: list[Range], tasks: int) -> list[list[Range]]:
    """The ranges divided into shares of about the same number of records; always at least one share, for the beats."""
    total = sum(part.last - part.first for part in ranges)
    if not total:
        return [[]]
    tasks = min(tasks, total)
    target = -(-total // tasks)
    shares: list[list[Range]] = [[]]
    room = target
    for part in ranges:
        first = part.first
        while first < part.last:
            if not room:
                shares.append([])
                room = target
            taken = min(room, part.last - first)
            shares[-1].append(Range(part.source, part.partition, first, first + taken))
            first, room = first + taken, room - taken
    return shares
