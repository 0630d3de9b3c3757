"""A whole epoch in one task: it reads, runs every level of every shard, and writes in the names of the tasks whose work it does.

The order of everything is that of an epoch in several tasks: state before outputs, level after level, shards by their numbers. So state
files, writers and what a crash leaves are the same, and each epoch may run either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.engine.planning.epoch_plan import Range
from headrace.engine.route import Result
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark.counted_rows import shards_of, task_of
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.reading import ingested
from headrace.spark.writing import Writing


class WholeEpoch:
    """One epoch of a job, with all its tasks in this one."""

    def __init__(self, job: Job, checkpoint: Path, time: EpochTime) -> None:
        self._job, self._checkpoint, self._time = job, checkpoint, time
        # Counts of all stages are written by the last one, in the task of the shard that they came from.
        self._counts = [Accounting() for _ in range(job.tasks)]
        self._packets: list[Packet] = []

    def read(self, ranges: Sequence[Range], limits: Mapping[str, int]) -> None:
        """Read the records of these ranges; nothing is written."""
        for home, read in ingested(self._job, ranges, self._time, limits).items():
            self._packets += read.packets
            self._counts[task_of(home, self._job.tasks, self._job.program.shards)].merge(read.accounting)

    def run(self) -> None:
        """Run it on the records that were read."""
        packets, levels = self._packets, self._job.program.levels
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
