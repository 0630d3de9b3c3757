"""A job without a JVM whose epochs run as they do in Spark's tasks: in several, with lists for shuffles, or in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

import headrace as hr
from headrace.checkpoint.journal import OFFSETS, QUERY, entry
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.spark import wire
from headrace.spark.counted_rows import task_of
from headrace.spark.level import Level
from headrace.spark.loop.whole_epoch import WholeEpoch
from headrace.spark.packet_files import EXCHANGE, PacketFiles
from headrace.spark.source import JobReader, Offset
from headrace.spark.stage import Stage
from headrace.spark.workers.shard_cache import cached_shards
from headrace.spark.writing import Written

SHARDS, TASKS = 4, 2
READERS = "readers"
"""An epoch whose readers write by themselves."""


class EpochsInTasks:
    """Epochs of an app with a checkpoint; each may be repeated, as after a crash, in other tasks than before."""

    def __init__(self, app: hr.App, checkpoint: Path, until: str | None = None) -> None:
        plan = app.plan()
        create_outputs(app.log, plan, TASKS)
        self.record = Record(f"{app.name}-1", SHARDS, TASKS, "")
        # However small, packets are in files.
        self._files = PacketFiles(checkpoint / EXCHANGE, least=0)
        job = job_of(plan, self.record, app.log, until=until, bounds=Bounds(quick=1_000_000))
        self._job = replace(job, packet_files=self._files)
        self._checkpoint, self._attempts, self._last = checkpoint, 0, ""
        (checkpoint / OFFSETS).mkdir(parents=True, exist_ok=True)
        (checkpoint / QUERY).write_text("{}")
        self._files.clear()
        self._reader = JobReader(self._job, checkpoint)
        self._reached: Offset = json.loads(json.dumps(self._reader.initialOffset()))

    def crash(self, until: str | None = None) -> None:
        """Lose what is in memory; the next run goes on from files."""
        cached_shards.drop(self._job.id)
        self._files.clear()
        self._job = replace(self._job, generation=self._job.generation + 1, until=until)
        self._reader = JobReader(self._job, self._checkpoint)

    def plan(self, rows: int | None = None) -> Offset | None:
        """The next epoch, planned and stored; None if there is nothing to do."""
        limit: ReadLimit = ReadAllAvailable() if rows is None else ReadMaxRows(rows)
        if self._job.until:
            self._reader.prepareForTriggerAvailableNow()
        found: Offset = json.loads(json.dumps(self._reader.latestOffset(self._reached, limit)))
        return None if found == self._reached else found

    def run(self, plan: Offset, tasks: str) -> None:
        """Run an epoch in these tasks, and commit it."""
        plan = {**plan, "tasks": "" if tasks == READERS else tasks}
        entry(self._checkpoint, OFFSETS, plan["epoch"] - 1).write_text(f"v1\n{{}}\n{json.dumps(plan)}")
        if tasks == READERS:
            reader = JobReader(replace(self._job, writes_where_read=True), self._checkpoint)
            for number, part in enumerate(reader.partitions(self._reached, plan)):
                assert not self._task(number, partial(reader.read, part))
        elif tasks == "one":
            known, before = EpochPlan.from_json(plan), EpochPlan.from_json(self._reached)
            with self._task_context(0):
                epoch = WholeEpoch(self._job, self._checkpoint, known.time(before))
                epoch.read(known.ranges(before), known.limits)
                epoch.run()
        else:
            # Whole epochs have processes of their own, which drop what they have in memory.
            if self._last == "one":
                cached_shards.drop(self._job.id)
            parts = self._reader.partitions(self._reached, plan)
            rows = [batch for number, part in enumerate(parts) for batch in self._task(number, partial(self._reader.read, part))]
            for stage in self._stages(keeps=tasks != "last"):
                rows = [batch for task in range(TASKS) for batch in self._task(task, partial(stage, _of(rows, task)))]
        assert not list(self._files.root.iterdir())
        self._reached, self._last = plan, tasks

    def _stages(self, *, keeps: bool) -> Iterator[Stage]:
        levels = self._job.program.levels
        if not levels:
            yield Written(self._job, alone=False)
        for number in range(1, levels + 1):
            yield Level(self._job, number, self._checkpoint, writes=number == levels, keeps=keeps)

    def _task(self, number: int, work: Any) -> list[pa.RecordBatch]:
        with self._task_context(number):
            return list(work())

    def _task_context(self, number: int) -> AbstractContextManager[None]:
        self._attempts += 1
        return _in_task(number, self._attempts)


def _of(rows: Sequence[pa.RecordBatch], task: int) -> list[pa.RecordBatch]:
    """The rows for the shards of a task."""
    mine = [row for batch in rows for row in batch.to_pylist() if task_of(row["shard"], TASKS, SHARDS) == task]
    return [pa.RecordBatch.from_pylist(mine, schema=wire.SCHEMA)]


@contextmanager
def _in_task(number: int, attempt: int) -> Iterator[None]:
    context: Any = TaskContext._getOrCreate()
    context._partitionId, context._taskAttemptId = number, attempt
    try:
        yield
    finally:
        TaskContext._taskContext = None
