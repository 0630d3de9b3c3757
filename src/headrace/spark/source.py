"""The source of a job that is a query of Spark: one stream for all its inputs, whose offset is the plan of the epoch.

Spark stores an offset before it runs the epoch, so that a recovered epoch sees exactly the same records and time. The offset is synced
before anything of the epoch is written: otherwise a power cut could leave outputs with an epoch of unknown content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.checkpoint.journal import OFFSETS, Journal
from headrace.engine.planning.epoch_plan import EpochPlan, Range
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark.epoch_planning import EpochPlanning
from headrace.spark.job import Job
from headrace.spark.read_shares import shares_of
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
        self._planning = EpochPlanning(job, checkpoint)
        self._journal = None if checkpoint is None else Journal(checkpoint)

    def initialOffset(self) -> Offset:
        return self._planning.planner.first().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._job.rows_per_epoch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planning.stop_at_present_records()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        before = self._known(start)
        plan = self._planning.next(before, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        return start if plan is before else plan.to_json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        before, plan = self._known(start), self._known(end)
        if before.epoch == plan.epoch:
            return []
        # A repeated epoch was planned by an earlier run.
        self._planning.planner.check(plan)
        if self._journal is not None:
            self._journal.sync(OFFSETS, plan.epoch)
        moment = plan.time(before)
        shares = shares_of(self._job, plan.ranges(before))
        return [ReaderTask((number, len(shares)), share, moment, plan.limits) for number, share in enumerate(shares)]

    def commit(self, end: Offset) -> None:
        # Spark reports an epoch when the next one begins; the run itself reports its last one.
        self._planning.tell(self._known(end))

    def _known(self, offset: Offset) -> EpochPlan:
        return self._planning.known(EpochPlan.from_json(offset))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Only tasks read: a process that plans epochs need not load the readers.
        from headrace.spark.reading import batch_of, write_where_read

        place, ranges, moment, limits = partition.value
        if self._job.writes_where_read:
            write_where_read(self._job, ranges, moment, limits, place[0])
        else:
            yield batch_of(self._job, ranges, moment, limits, place)


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
