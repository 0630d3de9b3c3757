"""The stateful operators of one level: a task has some shards, and takes each of them from one epoch to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.core import failpoints
from headrace.operators.accounting import Accounting
from headrace.operators.packet import Packet
from headrace.operators.passage import Place
from headrace.spark import wire
from headrace.spark.held import Kept, held
from headrace.spark.job import Job
from headrace.spark.shard_files import Attempt, shard_files
from headrace.spark.stage import Stage
from headrace.spark.stored import Stored
from headrace.spark.worker import leave_state, settle
from headrace.spark.writing import Writing

_Line = Row(*wire.SCHEMA.names)


class Level(Stage):
    """Runs the operators of one level for each shard; what is meant for later levels and sinks passes through.

    If nothing stands between the level and the sinks it writes to them, and passes nothing on. State is in the job's checkpoint.
    """

    def __init__(self, job: Job, number: int, checkpoint: Path, *, writes: bool) -> None:
        self.job = job
        self.number = number
        self._checkpoint = checkpoint
        self._writes = writes
        self._operators = [name for name, operator in job.program.operators.items() if operator.level == number]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for batch in batches:
            for row in batch.to_pylist():
                arrived[row["shard"]].append(row)
        writing = self.begin()
        for rows in arrived.values():
            if made := self.step(rows, writing):
                yield wire.batch(made)
        writing.finish()

    def step(self, arrived: Sequence[wire.Fields], writing: Writing) -> list[wire.Line]:
        """Take the shard to which some rows came through the epoch; gives what is to be passed on."""
        # Every shard has a beat.
        shard, time = arrived[0]["shard"], wire.time_of(arrived[0])
        kept = self._kept(shard, time.epoch - 1)
        failpoints.reach("state.change.before")
        accounting, made, manifests = Accounting(), list[Packet](), dict[str, str]()
        for name, state in kept.states.items():
            taken = [packet for packet in made if packet.target == name]
            made = [packet for packet in made if packet.target != name]
            taken += wire.packets(row for row in arrived if row["target"] == name)
            place = Place(name, shard, state, kept.states.get(self.job.program.operators[name].beside))
            result = self.job.program.step(place, taken, time, kept.stored.blobs(name))
            made += result.packets
            accounting.unite(result.accounting)
            manifests[name] = state.manifest()
        kept.stored.finish(manifests, self._attempt)
        held.keep(self.job.id, self.number, shard, kept)
        leave_state()
        failpoints.reach("state.change.after")
        passing = (row for row in arrived if row["target"] not in self._operators and row["target"] != wire.BEAT)
        if not self._writes:
            return [wire.line(row) for row in passing] + wire.lines(made, accounting, [shard], time, shard)
        writing.take_rows(passing)
        writing.take(made, accounting, time.epoch)
        return []

    def begin(self) -> Writing:
        """What a task of this level writes."""
        return Writing(self.job)

    @property
    def _attempt(self) -> Attempt:
        context = TaskContext.get()
        return Attempt(self.job.generation, 0 if context is None else context.taskAttemptId())

    def _kept(self, shard: int, epoch: int) -> Kept:
        """The shard as of an epoch: from this worker's memory if it is that, else read."""
        run, kept = self.job.generation, held.take(self.job.id, self.number, shard)
        if kept is not None and kept.run != run:
            # A repair may have had epochs planned anew: the same number need not be the same state.
            kept = None
        if kept is not None and kept.stored.epoch == epoch:
            return kept
        states = kept.states if kept is not None else {name: self.job.program.operators[name].fresh() for name in self._operators}
        stored = Stored(shard_files(self._checkpoint, self.number, shard), epoch)
        for name, state in states.items():
            state.restore(stored.operators.get(name), stored.blobs(name))
        return Kept(run, states, stored)


class PlacedLevel(StatefulProcessor):
    """A level behind Spark's own stateful operator: on a cluster that lets a task run where it ran before, and where its state is.

    Spark's store stays empty; to have it costs an epoch some 50 ms a level.
    """

    def __init__(self, level: Level) -> None:
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        self._writing = self._level.begin()

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for line in self._level.step(list(rows), self._writing):
            yield _Line(*line)

    def close(self) -> None:
        """The last that Spark calls in a task."""
        self._writing.finish()
