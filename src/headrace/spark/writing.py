"""The end of a job: views, topics, late records, dead letters and the accounting, each epoch once.

What a task has for them is written by the very task that made it, before its state is committed. A Python sink of Spark's would
cost two more processes a task, and a fresh one for the commit of every epoch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark import TaskContext

from headrace.connectors.output import Changes, Writer
from headrace.core import failpoints
from headrace.operators.accounting import Accounting
from headrace.operators.changes import OP, as_upserts
from headrace.operators.packet import Packet
from headrace.operators.sides import OFFSET, PARTITION, dead_letters
from headrace.plan.topics import accounting_topic, dead_topic
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.stage import Stage


class Writing:
    """What one task writes in an epoch; an epoch that is there already is skipped.

    A task is known by its number: as many as a job had when it began share its shards, always in the same way.
    """

    def __init__(self, job: Job) -> None:
        context = TaskContext.get()
        self._job = job
        self._task = context.partitionId() if context is not None else 0
        self._epoch: int | None = None
        self._accounting = Accounting()
        self._frames: dict[str, list[pl.DataFrame]] = defaultdict(list)

    def take_rows(self, rows: Iterable[wire.Fields]) -> None:
        """Take in what earlier stages made."""
        for row in rows:
            self._epoch = row["epoch"]
            if row["target"] == wire.COUNTS:
                self._accounting.unite(Accounting.of(json.loads(bytes(row["blob"]))))
            else:
                self._keep(wire.packets([row]))

    def take(self, packets: Iterable[Packet], accounting: Accounting, epoch: int) -> None:
        """Take in what this task made itself."""
        self._epoch = epoch
        self._accounting.unite(accounting)
        self._keep(packets)

    def finish(self) -> None:
        """Make it durable. The accounting comes first: if a record is missing, nothing is written."""
        if self._epoch is None:
            return
        self._accounting.check(but=self._job.program.observed)
        for target, frames in sorted(self._frames.items()):
            self._write(target, changes_of(pl.concat(frames, how="diagonal"), self._job.keys.get(target, ())))
        rows = [{"job": self._job.id, "epoch": self._epoch, **row} for row in self._accounting.entries()]
        if rows:
            failpoints.reach("sink.accounting.before")
            self._write(accounting_topic(self._job.name), Changes(pl.DataFrame(rows)))
            failpoints.reach("sink.accounting.after")

    def _keep(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            self._frames[packet.target].append(packet.frame)

    def _write(self, target: str, changes: Changes) -> None:
        assert self._epoch is not None
        writer = Writer(self._job.id, target, self._task, self._job.generation)
        failpoints.reach("sink.write.before")
        self._job.outputs[target].write(writer, self._epoch, changes, partial(self._bury, target))
        failpoints.reach("sink.write.after")

    def _bury(self, target: str, records: pl.DataFrame, reasons: Sequence[str]) -> None:
        nowhere = pl.DataFrame(schema={PARTITION: pl.Int32, OFFSET: pl.Int64}).clear(records.height)
        letters = dead_letters(records, nowhere, target, pl.Series(reasons, dtype=pl.String))
        self._write(dead_topic(target), Changes(letters))


def changes_of(frame: pl.DataFrame, key: tuple[str, ...]) -> Changes:
    """What an epoch means to an output with this key; without one, every record is a fact."""
    if not key:
        return Changes(frame)
    if OP in frame.columns:
        frame = as_upserts(frame, key)
        return Changes(frame, frame.get_column(OP) < 0)
    return Changes(frame.unique(subset=list(key), keep="last", maintain_order=True))


class Written(Stage):
    """Writing as a stage of its own, behind steps that Spark evaluates or where no operator stands before the sinks."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writing = Writing(self._job)
        for batch in batches:
            writing.take_rows(batch.to_pylist())
        writing.finish()
        return iter(())
