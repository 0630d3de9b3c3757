"""The source of a job: one stream for all its topics, whose offset carries the epoch and the watermark.

Spark writes an epoch's offset down before it runs the epoch, so a recovered epoch sees the very same records and time. It is synced before
anything of the epoch is written: else a power cut could leave outputs with an epoch of which nobody knows what was in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.connectors.input import Ahead, Position
from headrace.core import failpoints
from headrace.operators.time import BEGINNING, END, EpochTime
from headrace.operators.watermark import Progress, united
from headrace.plan.watermarks import LossBudget
from headrace.spark.alignment import Standing, aligned
from headrace.spark.job import Job
from headrace.spark.journal import OFFSETS, Journal
from headrace.spark.lateness import Times
from headrace.spark.schema import DDL
from headrace.spark.share import Range, balanced

Offset = dict[str, Any]


class Task(InputPartition):
    """What one reader task does in an epoch: some ranges, and for the first one the beats of all shards."""

    def __init__(self, number: int, ranges: Sequence[Range], time: EpochTime, limits: Mapping[str, int]) -> None:
        super().__init__((number, tuple(ranges), time, dict(limits)))


class JobReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans epochs on the driver and reads them in tasks."""

    def __init__(self, job: Job, checkpoint: Path | None = None) -> None:
        self._job = job
        self._journal = None if checkpoint is None else Journal(checkpoint)
        self._target: dict[str, Position] | None = None
        self._moment: int | None = None

    def initialOffset(self) -> Offset:
        positions = {name: _texts(source.beginning()) for name, source in self._job.inputs.items()}
        progress = {name: Progress().to_json() for name in self._job.inputs}
        return {
            "epoch": 0,
            "positions": positions,
            "progress": progress,
            "watermark": BEGINNING,
            "idle": False,
            "clock": BEGINNING,
            "taken_at": BEGINNING,
            "limits": dict.fromkeys(self._job.inputs, END),
            "ended": False,
        }

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._job.rows_per_epoch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()
        # What is there is taken in as of one moment: a run that takes long is no silence of the stream.
        self._moment = self._job.clock.now()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        failpoints.reach("source.plan.before")
        again = self._job.planned.get(start["epoch"] + 1)
        if again is not None:
            return dict(again)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        now = self._job.clock.now() if self._moment is None else self._moment
        positions, progress, moved = {}, {}, False
        believed = {name: self._limit(name, now) for name in self._job.inputs}
        ends = self._ends() if self._target is None else self._target
        begun = self._begun(start, ends)
        known = {**start, "positions": _started(start, begun)}
        ends = self._aligned(known, ends, now)
        for name, source in self._job.inputs.items():
            ahead = source.ahead(_numbers(known["positions"][name]), ends[name], rows, believed[name])
            positions[name] = _texts(ahead.position)
            moved |= positions[name] != start["positions"][name]
            progress[name] = self._progress(name, known, ahead, now)
        timed = [reach for name, reach in progress.items() if self._job.watermarks[name] is not None]
        watermark, idle = united(timed, start["watermark"])
        ended = bool(start["ended"])
        if not moved and self._job.until == "end" and not ended:
            watermark, idle, ended = END, False, True
        # Jobs that began before there were such windows have no clock in their offsets.
        before, taken_at = start.get("clock", BEGINNING), start.get("taken_at", BEGINNING)
        clock = max(before, now)
        due = self._job.packed.clocked and self._job.program.due(before, clock, taken_at)
        if not moved and not due and watermark == start["watermark"] and ended == start["ended"]:
            return start
        failpoints.reach("source.plan.after")
        return {
            "epoch": start["epoch"] + 1,
            "positions": positions,
            "progress": {name: reach.to_json() for name, reach in progress.items()},
            "watermark": watermark,
            "idle": idle,
            "clock": clock,
            "taken_at": clock if moved else taken_at,
            "limits": believed,
            "ended": ended,
            **({"begun": begun} if begun else {}),
        }

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["epoch"] == end["epoch"]:
            return []
        if self._journal is not None:
            self._journal.sync(OFFSETS, end["epoch"])
        clocks = (start.get("clock", BEGINNING), end.get("clock", BEGINNING))
        time = EpochTime(end["epoch"], start["watermark"], end["watermark"], end["idle"], *clocks)
        firsts = _started(start, end.get("begun", {}))
        ranges = [
            Range(name, int(partition), firsts[name].get(partition, 0), last)
            for name, positions in end["positions"].items()
            for partition, last in positions.items()
            if last > firsts[name].get(partition, 0)
        ]
        shares = balanced(ranges, self._job.tasks)
        return [Task(number, share, time, end["limits"]) for number, share in enumerate(shares)]

    def commit(self, end: Offset) -> None:
        # Spark tells of an epoch when the next one begins; of the last one of a run, the run does.
        failpoints.reach("source.done.before")
        for name, source in self._job.inputs.items():
            source.done(_numbers(end["positions"][name]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Only tasks read: who plans epochs need not load what reading takes.
        from headrace.spark.reading import batch_of

        number, ranges, time, limits = partition.value
        failpoints.reach("source.read.before")
        batch = batch_of(self._job, ranges, time, limits, beats=number == 0)
        failpoints.reach("source.read.after")
        yield batch

    def _ends(self) -> dict[str, Position]:
        """How far each source goes now."""
        return {name: source.end() for name, source in self._job.inputs.items()}

    def _aligned(self, start: Offset, ends: dict[str, Position], now: int) -> dict[str, Position]:
        """How far each source may be read in an epoch."""
        job = self._job
        if not job.aligned:
            return ends
        standings = {
            name: Standing(
                source, _numbers(start["positions"][name]), ends[name], Progress.from_json(start["progress"][name]), rule,
                self._limit(name, now), complete=self._target is not None,
            )
            for name, source in job.inputs.items() if (rule := job.watermarks[name]) is not None
        }  # fmt: skip
        return {**ends, **aligned(standings, job.aligned, now)}

    def _begun(self, start: Offset, ends: Mapping[str, Position]) -> dict[str, dict[str, int]]:
        """Where partitions begin that were not there before: retention may have taken their first records already.

        It is in the offset, so that an epoch that is repeated begins where it did.
        """
        fresh = {name: [partition for partition in end if str(partition) not in start["positions"][name]] for name, end in ends.items()}
        return {name: _texts(self._job.inputs[name].earliest(partitions)) for name, partitions in fresh.items() if partitions}

    def _progress(self, name: str, start: Offset, ahead: Ahead, now: int) -> Progress:
        """How far a stream's event time is when the records ahead are taken in."""
        before = Progress.from_json(start["progress"][name])
        seen = before.observe(ahead.latest, now)
        rule, time = self._job.watermarks[name], self._job.packed.times[name]
        if isinstance(rule, LossBudget) and time is not None:
            times = Times(self._job.inputs[name], time, self._limit(name, now))
            seen = seen.learn(rule, times.lateness_ahead(_numbers(start["positions"][name]), ahead.position, before))
        return seen if rule is None else seen.advance(rule, now, self._closing)

    def _closing(self, moment: int) -> int:
        # Only when a whole stream is silent is the program asked, and unpacked for that.
        return self._job.program.closing(moment)

    def _limit(self, name: str, now: int) -> int:
        rule = self._job.watermarks[name]
        return END if rule is None else now + rule.max_ahead // timedelta(microseconds=1)


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


def _started(start: Offset, begun: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Where each partition of each source goes on, or begins."""
    return {name: {**begun.get(name, {}), **positions} for name, positions in start["positions"].items()}


def _texts(position: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(position.items())}


def _numbers(position: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in position.items()}
