"""The stateful operators of one level, as a Spark state processor: one call a shard and epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

from headrace.core import failpoints
from headrace.operators.accounting import Accounting
from headrace.operators.contract import Stateful
from headrace.operators.packet import Packet
from headrace.operators.passage import Place
from headrace.spark import wire
from headrace.spark.held import held
from headrace.spark.job import Job
from headrace.spark.worker import leave_state, settle
from headrace.spark.writing import Writing

_NAME, _BLOB = StructType().add("name", StringType()), StructType().add("blob", BinaryType())
_MANIFEST = "manifest"
_Line = Row(*wire.SCHEMA.names)


class Level(StatefulProcessor):
    """Runs the operators of one level for each shard; what is meant for later levels and sinks passes through.

    If nothing stands between the level and the sinks it writes to them, and passes nothing on.
    """

    def __init__(self, job: Job, level: int, *, writes: bool) -> None:
        self._job = job
        self._writes = writes
        self._operators = [name for name, operator in job.program.operators.items() if operator.level == level]

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        # One variable, and its types not as text: Spark takes some milliseconds for each of these, in every task.
        self._blobs = handle.getMapState("state", _NAME, _BLOB)
        self._writing = Writing(self._job)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        arrived = list(rows)
        # Every shard has a beat.
        shard, time = arrived[0]["shard"], wire.time_of(arrived[0])
        stored = self._blobs.getValue((_MANIFEST,))
        manifest: dict[str, Any] = json.loads(bytes(stored[0])) if stored is not None else {"epoch": 0, "operators": {}}
        failpoints.reach("state.change.before")
        accounting, made, states = Accounting(), list[Packet](), dict[str, Stateful]()
        for name in self._operators:
            store = _SparkStore(self._blobs, name)
            states[name] = state = self._state(name, shard, manifest, store)
            taken = [packet for packet in made if packet.target == name]
            made = [packet for packet in made if packet.target != name]
            taken += wire.packets(row for row in arrived if row["target"] == name)
            place = Place(name, shard, state, states.get(self._job.program.operators[name].beside))
            result = self._job.program.step(place, taken, time, store)
            made += result.packets
            accounting.unite(result.accounting)
            manifest["operators"][name] = state.manifest()
            held.keep(self._job.id, name, shard, (time.epoch, state))
        leave_state()
        manifest["epoch"] = time.epoch
        self._blobs.updateValue((_MANIFEST,), (json.dumps(manifest).encode(),))
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

    def _state(self, name: str, shard: int, manifest: dict[str, Any], store: _SparkStore) -> Stateful:
        """The state as of the last committed epoch: from this worker's memory if it is that, else read."""
        epoch, state = held.take(self._job.id, name, shard) or (-1, self._job.program.operators[name].fresh())
        if epoch != manifest["epoch"]:
            state.restore(manifest["operators"].get(name), store)
        return state


class _SparkStore:
    """The blobs of one operator in Spark's state store."""

    def __init__(self, state: Any, operator: str) -> None:
        self._state = state
        self._operator = operator

    def get(self, name: str) -> bytes | None:
        found = self._state.getValue((f"{self._operator}/{name}",))
        return None if found is None else bytes(found[0])

    def put(self, name: str, blob: bytes) -> None:
        self._state.updateValue((f"{self._operator}/{name}",), (blob,))

    def delete(self, name: str) -> None:
        self._state.removeKey((f"{self._operator}/{name}",))
