"""The stateful operators of one level, as a Spark state processor: one call a shard and epoch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

from headrace.core import failpoints
from headrace.operators.accounting import Accounting
from headrace.operators.packet import Packet
from headrace.operators.passage import Place
from headrace.spark import wire
from headrace.spark.blob_files import shard_files
from headrace.spark.held import Kept, held
from headrace.spark.job import Job
from headrace.spark.stored import Stored
from headrace.spark.worker import leave_state, settle
from headrace.spark.writing import Writing

_NAME, _BLOB = StructType().add("name", StringType()), StructType().add("blob", BinaryType())
_Line = Row(*wire.SCHEMA.names)


class Level(StatefulProcessor):
    """Runs the operators of one level for each shard; what is meant for later levels and sinks passes through.

    If nothing stands between the level and the sinks it writes to them, and passes nothing on. Files of large blobs are below `blobs`.
    """

    def __init__(self, job: Job, level: int, blobs: Path, *, writes: bool) -> None:
        self._job = job
        self._level = level
        self._blobs = blobs
        self._writes = writes
        self._operators = [name for name, operator in job.program.operators.items() if operator.level == level]

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        # One variable, and its types not as text: Spark takes some milliseconds for each of these, in every task.
        self._state = handle.getMapState("state", _NAME, _BLOB)
        self._writing = Writing(self._job)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        arrived = list(rows)
        # Every shard has a beat.
        shard, time = arrived[0]["shard"], wire.time_of(arrived[0])
        stored = Stored(self._state, shard_files(self._blobs, self._level, shard), time.epoch)
        kept = self._kept(shard, stored)
        failpoints.reach("state.change.before")
        accounting, made = Accounting(), list[Packet]()
        for name, state in kept.states.items():
            taken = [packet for packet in made if packet.target == name]
            made = [packet for packet in made if packet.target != name]
            taken += wire.packets(row for row in arrived if row["target"] == name)
            place = Place(name, shard, state, kept.states.get(self._job.program.operators[name].beside))
            result = self._job.program.step(place, taken, time, stored.blobs(name))
            made += result.packets
            accounting.unite(result.accounting)
            stored.manifests[name] = state.manifest()
        held.keep(self._job.id, self._level, shard, Kept(time.epoch, kept.states, stored.keep(kept.spent)))
        leave_state()
        failpoints.reach("state.change.after")
        passing = (row for row in arrived if row["target"] not in self._operators and row["target"] != wire.BEAT)
        if self._writes:
            self._writing.take_rows(passing)
            self._writing.take(made, accounting, time.epoch)
            return
        yield from (_Line(*(row[name] for name in wire.SCHEMA.names)) for row in passing)
        yield from (_Line(*line) for line in wire.lines(made, accounting, [shard], time, shard))

    def close(self) -> None:
        """The last that Spark calls in a task, before it commits the task's state."""
        self._writing.finish()

    def _kept(self, shard: int, stored: Stored) -> Kept:
        """The shard as of the last committed epoch: from this worker's memory if it is that, else read."""
        kept = held.take(self._job.id, self._level, shard)
        if kept is not None and kept.epoch == stored.epoch:
            return kept
        states = kept.states if kept is not None else {name: self._job.program.operators[name].fresh() for name in self._operators}
        for name, state in states.items():
            state.restore(stored.manifests.get(name), stored.blobs(name))
        return Kept(stored.epoch, states, stored.spent())
