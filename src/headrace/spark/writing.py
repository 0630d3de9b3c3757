"""The end of a job: views, topics, late records, dead letters and the accounting, each epoch once.

A task itself writes its output, before its state is committed. A Python sink of Spark's would cost two more processes for each task, and a
new one for the commit of every epoch.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import polars as pl
import pyarrow as pa

from headrace.connectors.output import Changes, Writer
from headrace.core import failpoints
from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.engine.side_topics import dead_letters
from headrace.operators.changes import net_changes
from headrace.operators.columns import OFFSET, PARTITION
from headrace.plan.topics import accounting_topic, dead_topic
from headrace.spark import wire
from headrace.spark.counted_rows import Inbox, shards_of
from headrace.spark.job import Job
from headrace.spark.stage import Stage, task_number


class Writing:
    """The output of one task in an epoch; an epoch that is already written is skipped.

    A task is identified by its number: the number of tasks is fixed when a job begins, and each always has the same shards.
    """

    def __init__(self, job: Job, task: int | None = None) -> None:
        self._job = job
        self._task = task_number() if task is None else task
        self.repeated = False
        """Whether an output had the epoch already, from an earlier attempt."""
        self._epoch: int | None = None
        self._accounting = Accounting()
        self._frames: dict[str, list[pl.DataFrame]] = defaultdict(list)

    def take_rows(self, rows: Iterable[wire.Fields]) -> None:
        """Add the output of earlier stages."""
        for row in rows:
            self._epoch = row["epoch"]
            if row["target"] == wire.COUNTS:
                self._accounting.merge(Accounting.of(json.loads(bytes(row["blob"]))))
            else:
                self._keep(wire.packets([row]))

    def take(self, packets: Iterable[Packet], accounting: Accounting, epoch: int) -> None:
        """Add the output of this task itself."""
        self._epoch = epoch
        self._accounting.merge(accounting)
        self._keep(packets)

    def finish(self) -> None:
        """Make it durable. The accounting is checked first: if a record is missing, the last stage writes nothing."""
        if self._epoch is None:
            return
        self._accounting.check(but=self._job.program.observed)
        self._accounting.merge(self.write())
        rows = [{"job": self._job.id, "epoch": self._epoch, **row} for row in self._accounting.entries()]
        if rows:
            failpoints.reach("sink.accounting.before")
            self._write(accounting_topic(self._job.name), Changes(pl.DataFrame(rows)))
            failpoints.reach("sink.accounting.after")

    def write(self) -> Accounting:
        """Make all but the accounting durable; returns how long that took. A stage that is not the last one sends it on: a task writes the
        accounting of an epoch once."""
        times = Accounting()
        for target, frames in sorted(self._frames.items()):
            changes = Changes(*net_changes(pl.concat(frames, how="diagonal"), self._job.keys.get(target, ())))
            began = time.perf_counter_ns()
            self._write(target, changes)
            if target in self._job.program.outlets:
                times.wrote(target, (time.perf_counter_ns() - began) // 1_000)
        return times

    def _keep(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            self._frames[packet.target].append(packet.frame)

    def _write(self, target: str, changes: Changes) -> None:
        assert self._epoch is not None
        writer = Writer(self._job.id, target, self._task, self._job.generation, self._job.tasks)
        failpoints.reach("sink.write.before")
        written = self._job.outputs[target].write(writer, self._epoch, changes, partial(self._bury, target))
        self.repeated |= not written
        failpoints.reach("sink.write.after")

    def _bury(self, target: str, records: pl.DataFrame, reasons: Sequence[str]) -> None:
        nowhere = pl.DataFrame(schema={PARTITION: pl.Int32, OFFSET: pl.Int64}).clear(records.height)
        letters = dead_letters(records, nowhere, target, pl.Series(reasons, dtype=pl.String))
        self._write(dead_topic(target), Changes(letters))


class Written(Stage):
    """Writing as a stage of its own, after steps that Spark evaluates or where no operator is before the sinks.

    Its rows were sent by many tasks, each to some shards, or `alone` by its own task, to all shards.
    """

    def __init__(self, job: Job, *, alone: bool) -> None:
        self._job = job
        self._alone = alone

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        inbox, shards = Inbox(), self._job.program.shards
        for batch in batches:
            inbox.take(batch.to_pylist())
        mine = range(shards) if self._alone else shards_of(task_number(), self._job.tasks, shards)
        writing = Writing(self._job)
        for rows in inbox.complete(mine, 1 if self._alone else None).values():
            writing.take_rows(row for row in rows if row["target"] != wire.BEAT)
        writing.finish()
        return iter(())
