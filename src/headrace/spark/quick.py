"""A whole epoch in one task: it reads, runs every level of every shard, and writes in the names of the tasks whose work it does.

Spark runs it as a job with one task that is the same for every epoch: planning a batch would take longer than the work of a small one. The
task is told only the number of its batch, and reads the plan of the epoch where Spark has stored it.

The order of everything is that of an epoch in several tasks: state before outputs, level after level, shards by their numbers. So state
files, writers and what a crash leaves are the same, and each epoch may run either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pyspark import SparkContext, TaskContext

from headrace.checkpoint.epoch_files import stored_plan
from headrace.checkpoint.journal import OFFSETS, Journal, entry
from headrace.core.errors import JobError
from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.engine.planning.epoch_plan import EpochPlan, Range
from headrace.engine.route import Result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark.counted_rows import shards_of, task_of
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.reading import ingested
from headrace.spark.stages_of_tasks import workers_apart
from headrace.spark.workers.shard_cache import cached_shards
from headrace.spark.workers.worker import retire, settle
from headrace.spark.writing import Writing

_BATCH, _NONE = "headrace.batch", "none"


class WholeEpochs:
    """The epochs of a job that run in one task."""

    def __init__(self, context: SparkContext, job: Job, checkpoint: Path) -> None:
        self._context, self._in_memory = context, False
        with workers_apart(context, "whole epochs"):
            # Spark gets the function with the job now, once.
            self._task = context.parallelize([None], 1).mapPartitions(WholeEpoch(job, checkpoint))._jrdd  # noqa: SLF001

    def run(self, batch: int) -> None:
        """Run the epoch that Spark has planned as this batch."""
        self._in_memory = True
        if (done := self._count(str(batch))) != 1:
            raise JobError(f"epoch {batch + 1} in one task was reported {done} times", why="it is not certain that all of it is written")

    def leave_memory(self) -> None:
        """Drop the state in the memory of the task's process, before several tasks have it in theirs."""
        if self._in_memory:
            self._count(_NONE)
            self._in_memory = False

    def _count(self, batch: str) -> int:
        self._context.setLocalProperty(_BATCH, batch)
        done: int = self._task.count()
        return done


class WholeEpoch:
    """What the task does: the epoch of the batch that it is told, or an end of what it has in memory."""

    def __init__(self, job: Job, checkpoint: Path) -> None:
        self._job, self._checkpoint = job, checkpoint

    def __call__(self, rows: Iterable[None]) -> Iterator[bool]:
        # Spark ends a process that has not read all of its input.
        deque(rows, maxlen=0)
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(_BATCH)
        assert batch is not None, "a task of Spark that is told its batch"
        if batch == _NONE:
            cached_shards.drop(self._job.id)
            retire()
        else:
            self.perform(int(batch))
            yield True

    def perform(self, batch: int) -> None:
        """Do all of the epoch that is planned as this batch."""
        plan = self._plan(batch)
        # A repeated epoch was planned by an earlier run.
        planner = self._job.planner()
        planner.check(plan)
        _journal(self._checkpoint, self._job.id).sync(OFFSETS, plan.epoch)
        before = self._plan(batch - 1) if batch else planner.first()
        QuickEpoch(self._job, self._checkpoint, plan.time(before)).run(plan.ranges(before), plan.limits)

    def _plan(self, batch: int) -> EpochPlan:
        return stored_plan(entry(self._checkpoint, OFFSETS, batch)).limited(self._job.inputs)


@cache
def _journal(checkpoint: Path, _job: str) -> Journal:
    """One for each job: another may have begun in the same place."""
    return Journal(checkpoint)


class QuickEpoch:
    """One epoch of a job, with all its tasks in this one."""

    def __init__(self, job: Job, checkpoint: Path, time: EpochTime) -> None:
        self._job, self._checkpoint, self._time = job, checkpoint, time
        # Counts of all stages are written by the last one, in the task of the shard that they came from.
        self._counts = [Accounting() for _ in range(job.tasks)]

    def run(self, ranges: Sequence[Range], limits: Mapping[str, int]) -> None:
        """Run it on the records of these ranges."""
        settle()
        read, levels = ingested(self._job, ranges, self._time, limits), self._job.program.levels
        packets = read.packets
        self._counts[0].merge(read.accounting)
        for number in range(1, levels + 1):
            packets = self._level(Level(self._job, number, self._checkpoint, writes=number == levels), packets, last=number == levels)
        if not levels:
            self._write_all(packets)

    def _level(self, level: Level, packets: Sequence[Packet], *, last: bool) -> list[Packet]:
        """Run a level, and write what it writes; the packets that go on to the next one."""
        writings = [level.begin(task) for task in range(self._job.tasks)]
        going: list[Packet] = []
        for shard in range(self._job.program.shards):
            mine = [packet for packet in packets if packet.shard == shard]
            made = self._advanced(level, shard, mine)
            task = task_of(shard, self._job.tasks, self._job.program.shards)
            self._counts[task].merge(made.accounting)
            leaving = [packet for packet in mine if level.passes(packet.target)] + made.packets
            writings[task].take((packet for packet in leaving if level.writes(packet.target)), Accounting(), self._time.epoch)
            going += [packet for packet in leaving if not level.writes(packet.target)]
        for task, writing in enumerate(writings):
            if last:
                self._finish(writing, task)
            else:
                self._counts[task].merge(writing.write())
            level.yield_to_earlier(writing, shards_of(task, self._job.tasks, self._job.program.shards), self._time.epoch)
        return going

    def _advanced(self, level: Level, shard: int, mine: Sequence[Packet]) -> Result:
        return level.advance(shard, lambda name: [packet for packet in mine if packet.target == name], self._time)

    def _write_all(self, packets: Sequence[Packet]) -> None:
        """Write what the stateless steps emitted, where there are no others."""
        for task in range(self._job.tasks):
            mine = shards_of(task, self._job.tasks, self._job.program.shards)
            writing = Writing(self._job, task)
            writing.take((packet for shard in mine for packet in packets if packet.shard == shard), Accounting(), self._time.epoch)
            self._finish(writing, task)

    def _finish(self, writing: Writing, task: int) -> None:
        writing.take((), self._counts[task], self._time.epoch)
        writing.finish()
