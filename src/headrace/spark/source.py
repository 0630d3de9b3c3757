"""The source of a job on Spark: one stream for all its inputs, whose offset is the plan of the epoch.

Spark stores an offset before it runs the epoch, so that a recovered epoch sees exactly the same records and time. The offset is synced
before anything of the epoch is written: otherwise a power cut could leave outputs with an epoch of unknown content.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.checkpoint.journal import OFFSETS, Journal
from headrace.core import failpoints
from headrace.core.files.replacing import replace_text
from headrace.engine.planning.epoch_plan import EpochPlan, Range
from headrace.engine.planning.epoch_size import EPOCH_ROWS, EpochSize
from headrace.engine.planning.planner import Ends
from headrace.engine.planning.quick_epochs import QuickEpochs
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark.job import Job
from headrace.spark.read_shares import balanced
from headrace.spark.schema import DDL

Offset = dict[str, Any]


class ReaderTask(InputPartition):
    """The work of one reader task in an epoch: some ranges; `place` is its number, and how many there are."""

    def __init__(self, place: tuple[int, int], ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int]) -> None:
        super().__init__((place, tuple(ranges), time, dict(limits)))


class JobReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans epochs on the driver and reads them in tasks."""

    def __init__(self, job: Job, checkpoint: Path | None = None) -> None:
        self._job = job
        self._planner = job.planner()
        self._checkpoint = checkpoint
        self._journal = None if checkpoint is None else Journal(checkpoint)
        self._quick = QuickEpochs(job.quick_rows)
        self._target: Ends | None = None
        self._moment: int | None = None
        self._size = None if job.rows_per_epoch is None else EpochSize(job.epoch_seconds, job.rows_per_epoch)
        self._shown = None if checkpoint is None else checkpoint.parent / EPOCH_ROWS
        self._begun: tuple[int, int, float] | None = None
        self._first: int | None = None

    def initialOffset(self) -> Offset:
        return self._planner.first().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._job.rows_per_epoch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._planner.ends()
        # The present records are taken in as of one moment: a long run is not a silence of the stream.
        self._moment = self._job.clock.now()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        failpoints.reach("source.plan.before")
        before = self._known(start)
        again = self._job.planned.get(before.epoch + 1)
        if again is not None:
            return again.to_json()
        took = self._measured(before.epoch)
        rows = self._bounded(before.epoch, took, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        now = self._job.clock.now() if self._moment is None else self._moment
        plan = self._planner.next(before, now, rows, self._target)
        if plan is before:
            return start
        taken = [_records(plan, before, name) for name in plan.positions]
        plan = replace(plan, tasks=self._quick.tasks(sum(taken), None if took is None else took[1]))
        self._begun = (plan.epoch, max(taken, default=0), time.monotonic())
        # The first epoch of a run starts workers, too: it says nothing of its records.
        self._first = plan.epoch if self._first is None else self._first
        failpoints.reach("source.plan.after")
        return plan.to_json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        before, plan = self._known(start), self._known(end)
        if before.epoch == plan.epoch:
            return []
        # A repeated epoch was planned by an earlier run.
        self._planner.check(plan)
        if self._journal is not None:
            self._journal.sync(OFFSETS, plan.epoch)
        moment = plan.time(before)
        shares = balanced(plan.ranges(before), self._job.tasks)
        return [ReaderTask((number, len(shares)), share, moment, plan.limits) for number, share in enumerate(shares)]

    def commit(self, end: Offset) -> None:
        # Spark reports an epoch when the next one begins; the run itself reports its last one.
        failpoints.reach("source.done.before")
        for name, position in self._known(end).positions.items():
            self._job.inputs[name].done(position)

    def _measured(self, epoch: int) -> tuple[int, float] | None:
        """The records of the last epoch and its seconds, if it was planned just before: otherwise the job may have been idle since."""
        begun, self._begun = self._begun, None
        return (begun[1], time.monotonic() - begun[2]) if begun is not None and begun[0] == epoch != self._first else None

    def _bounded(self, epoch: int, took: tuple[int, float] | None, rows: int | None) -> int | None:
        """The most records that the next epoch takes in of a stream, by how long the one before it took."""
        if self._size is None or rows is None:
            return rows
        if took is not None:
            before = self._size.rows
            chosen = self._size.after(*took)
            if chosen != before and self._shown is not None:
                replace_text(self._shown, json.dumps({"rows": chosen, "why": self._size.why, "epoch": epoch}))
        return min(rows, self._size.rows)

    def _known(self, offset: Offset) -> EpochPlan:
        """An epoch as it was planned; an earlier version of the app may have read other streams, too."""
        return EpochPlan.from_json(offset).limited(self._job.inputs)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Only tasks read: a process that plans epochs need not load the readers.
        from headrace.spark.reading import batch_of

        place, ranges, moment, limits = partition.value
        yield batch_of(self._job, ranges, moment, limits, place)


def _records(plan: EpochPlan, before: EpochPlan, stream: str) -> int:
    start = before.positions.get(stream, {})
    return sum(end - start.get(partition, 0) for partition, end in plan.positions[stream].items())


def job_source(job: Job, checkpoint: Path) -> type[DataSource]:
    """The data source of a job, to be registered with Spark."""

    class JobSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "headrace"

        def schema(self) -> str:
            return DDL

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return JobReader(job, checkpoint)

    return JobSource
