"""The stateful operators of one level: a task has some shards, and takes each of them from one epoch to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.checkpoint.shard_files import ShardFiles, WriterAttempt, shard_files
from headrace.checkpoint.shard_state import StoredShard, attempted, withdrawn
from headrace.core import failpoints
from headrace.engine.accounting import Accounting
from headrace.engine.level import Shard, operators_of
from headrace.engine.packet import Packet
from headrace.engine.program.output_stages import output_stages
from headrace.engine.route import Result
from headrace.operators.contract import Recalling
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.operators.state.store import MemoryStore
from headrace.spark import wire
from headrace.spark.counted_rows import Inbox, Outbox, check_complete, missing_shards, shards_of
from headrace.spark.job import Job
from headrace.spark.stage import Stage, task_number
from headrace.spark.workers.shard_cache import CachedShard, cached_shards
from headrace.spark.workers.worker import leave_state, retire, settle
from headrace.spark.writing import Writing

_Line = Row(*wire.SCHEMA.names)


class Level(Stage):
    """Runs the operators of one level for each shard, and writes the outputs that nothing later emits to; the rest passes through.

    If nothing is between the level and the sinks, it writes to all of them, and passes nothing on. State is in the job's checkpoint, and in
    the memory of its process if it `keeps` it there for the next epoch.
    """

    def __init__(self, job: Job, number: int, checkpoint: Path, *, writes: bool, keeps: bool = True) -> None:
        self.job = job
        self.number = number
        self._checkpoint = checkpoint
        self._writes = writes
        self._keeps = keeps
        self._operators = operators_of(job.program, number)
        self._names = {name: job.program.stored_as(name) for name in self._operators}
        self._outputs = frozenset(name for name, level in output_stages(job.program).items() if level == number)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        inbox = Inbox()
        for batch in batches:
            inbox.take(batch.to_pylist())
        arrived = inbox.complete(self.shards)
        writing, outbox = self.begin(), Outbox(self.job.program.shards, self.job.packet_files)
        for rows in arrived.values():
            if made := self.step(rows, writing, outbox):
                yield wire.batch(made)
        time = wire.time_of(rows[0])
        made = self.finish(writing, outbox, time, next(iter(arrived)))
        self.yield_to_earlier(writing, list(arrived), time.epoch)
        if not self._writes:
            yield wire.batch(made + outbox.beats(time, task_number(), self.job.tasks))

    def yield_to_earlier(self, writing: Writing, shards: Sequence[int], epoch: int) -> None:
        """Use the state of an earlier attempt if outputs have the epoch from it: a function of the user's may return something else when
        repeated."""
        for shard in shards if writing.repeated else ():
            if withdrawn(self._files(shard), epoch, self._attempt):
                cached_shards.take(self.job.id, self.number, shard)

    @property
    def shards(self) -> list[int]:
        """The shards of this task."""
        return shards_of(task_number(), self.job.tasks, self.job.program.shards)

    def step(self, arrived: Sequence[wire.Fields], writing: Writing, outbox: Outbox) -> list[wire.Line]:
        """Run a shard through the epoch on the rows that arrived for it; returns what is to be passed on."""
        shard, time = arrived[0]["shard"], wire.time_of(arrived[0])
        # Packets are decoded for one operator at a time.
        made = self.advance(shard, lambda name: list(wire.packets(row for row in arrived if row["target"] == name)), time)
        passing = [row for row in arrived if self.passes(row["target"]) and row["target"] != wire.BEAT]
        if self._writes:
            writing.take_rows(passing)
            writing.take(made.packets, made.accounting, time.epoch)
            return []
        writing.take_rows(row for row in passing if self.writes(row["target"]))
        writing.take((packet for packet in made.packets if self.writes(packet.target)), Accounting(), time.epoch)
        left = [wire.line(row) for row in passing if not self.writes(row["target"])]
        going = [packet for packet in made.packets if not self.writes(packet.target)]
        return outbox.counted(left) + outbox.lines(going, made.accounting, time, shard)

    def finish(self, writing: Writing, outbox: Outbox, time: EpochTime, shard: int) -> list[wire.Line]:
        """Make the outputs of the task durable; returns what is to be passed on: how long that took, under one of its shards."""
        if not self._writes:
            return outbox.lines((), writing.write(), time, shard)
        writing.finish()
        return []

    def advance(self, shard: int, arrived: Callable[[str], list[Packet]], time: EpochTime) -> Result:
        """Run the operators of a shard through an epoch, and store their state; `arrived` has the packets of an operator."""
        kept = self._kept(shard, time.epoch - 1)
        self._recall(kept, shard, time.epoch)
        failpoints.reach("state.change.before")
        made = Shard(shard, kept.states, lambda name: kept.stored.blobs(self._names[name].id)).run(self.job.program, arrived, time)
        manifests = {self._names[name].id: state.manifest() for name, state in kept.states.items()}
        kept.stored.finish(manifests, self._attempt, dict(self._names.values()))
        if self._keeps:
            cached_shards.keep(self.job.id, self.number, shard, kept)
            leave_state()
        else:
            retire()
        failpoints.reach("state.change.after")
        return made

    def passes(self, target: str) -> bool:
        """Whether what is sent to a target is for no operator of this level."""
        return target not in self._operators

    def writes(self, target: str) -> bool:
        """Whether this level writes to an output, or to all that it meets."""
        return self._writes or target in self._outputs

    def begin(self, task: int | None = None) -> Writing:
        """The outputs that a task of this level writes; by default the present task."""
        return Writing(self.job, task)

    @property
    def _attempt(self) -> WriterAttempt:
        context = TaskContext.get()
        return WriterAttempt(self.job.generation, 0 if context is None else context.taskAttemptId())

    def _files(self, shard: int) -> ShardFiles:
        steps = [name.id for name in self._names.values()]
        return shard_files(self._checkpoint, self.number, shard, self.job.layout, steps)

    def _recall(self, kept: CachedShard, shard: int, epoch: int) -> None:
        """Let operators that ask others have the answers of an earlier attempt of the epoch: its results may have been written."""
        if not any(_recalls(type(state)) for state in kept.states.values()):
            return
        asking = {name: state for name, state in kept.states.items() if isinstance(state, Recalling)}
        earlier = attempted(self._files(shard), epoch)
        if earlier is None:
            return
        for name, state in asking.items():
            manifest = earlier.manifest_of(*self._names[name])
            if manifest is not None:
                state.recall(manifest, MemoryStore(earlier.blobs(self._names[name].id)))

    def _kept(self, shard: int, epoch: int) -> CachedShard:
        """The shard as of an epoch: from this worker's memory if it is there, else from files."""
        kept = cached_shards.take(self.job.id, self.number, shard)
        if kept is not None and kept.run_id != self.job.run_id:
            # After a repair, or in a restored backup, epochs may have been planned again: the same number need not be the same state.
            kept = None
        if kept is not None and kept.stored.epoch == epoch:
            return kept
        states = kept.states if kept is not None else {name: self.job.program.operators[name].fresh() for name in self._operators}
        stored = StoredShard(self._files(shard), epoch)
        for name, state in states.items():
            step, fingerprint = self._names[name]
            state.restore(stored.manifest_of(step, fingerprint), stored.blobs(step))
        return CachedShard(self.job.run_id, states, stored)


@cache
def _recalls(kind: type) -> bool:
    """Whether states of a class recall answers; to find out costs too much for every epoch."""
    return issubclass(kind, Recalling)


class PlacedLevel(StatefulProcessor):
    """A level after Spark's own stateful operator: on a cluster, this makes a task run where it ran before, next to its state.

    Spark's store stays empty; it costs an epoch some 50 ms for each level.
    """

    def __init__(self, level: Level) -> None:
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        self._writing, self._done = self._level.begin(), list[int]()

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        arrived, shards = list(rows), self._level.job.program.shards
        shard, time = arrived[0]["shard"], wire.time_of(arrived[0])
        check_complete(arrived, shard)
        # Nothing can be sent when the task ends, so each shard is a sender of its own, and the last one finishes the task.
        outbox = Outbox(shards)
        made = self._level.step(arrived, self._writing, outbox)
        self._done.append(shard)
        if sorted(self._done) == self._level.shards:
            made += self._level.finish(self._writing, outbox, time, shard)
            self._level.yield_to_earlier(self._writing, self._done, time.epoch)
        for line in (*made, *outbox.beats(time, shard, shards)):
            yield _Line(*line)

    def close(self) -> None:
        """The last call of Spark in a task."""
        # A task that did nothing at all, as when Spark only reads its state, has nothing to write.
        if self._done and sorted(self._done) != self._level.shards:
            raise missing_shards(self._done, self._level.shards)
