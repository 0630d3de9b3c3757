"""The end of a job: views, topics, late records, dead letters and the accounting, each epoch once.

What a task has for them is written by the very task that made it, before its state is committed. A Python sink of Spark's would
cost two more processes a task, and a fresh one for the commit of every epoch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa
from pyspark import TaskContext

from headrace.connectors.log.input import opened
from headrace.log.topic import Topic
from headrace.operators.accounting import Accounting
from headrace.operators.changes import OP, as_upserts
from headrace.operators.legible import key_text
from headrace.operators.packet import Packet
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.worker import settle


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
        self._parts: dict[tuple[str, int], list[pl.DataFrame]] = defaultdict(list)

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
        for (target, partition), frames in sorted(self._parts.items()):
            self._append(target, partition, pl.concat(frames, how="diagonal"), self._epoch)
        rows = [{"job": self._job.id, "epoch": self._epoch, **row} for row in self._accounting.rows()]
        if rows:
            table = pa.Table.from_pylist(rows)
            writer = f"{self._job.id}/{self._task}"
            opened(self._job.log).append_epoch(f"{self._job.name}.accounting", table, writer=writer, epoch=self._epoch, partition=0)

    def _keep(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            self._parts[packet.target, packet.shard % self._topic(packet.target).partitions].append(packet.frame)

    def _append(self, target: str, partition: int, frame: pl.DataFrame, epoch: int) -> None:
        topic = self._topic(target)
        key = self._job.keys.get(target, ())
        if key:
            if OP in frame.columns:
                frame = as_upserts(frame, key)
            frame = frame.with_columns(key_text(frame, key).cast(pl.Binary).alias("_key"))
            if OP in frame.columns:
                frame = frame.with_columns((pl.col(OP) < 0).alias("_tombstone"))
        wanted = [name for name in (*topic.columns.names, "_key", "_tombstone") if name in frame.columns]
        opened(self._job.log).append_epoch(
            topic.name,
            frame.select(wanted).to_arrow(),
            writer=f"{self._job.id}/{target}/{self._task}",
            epoch=epoch,
            partition=partition,
        )

    def _topic(self, target: str) -> Topic:
        return opened(self._job.log).topic(self._job.topics.get(target, target))


class Written:
    """Writing as a stage of its own, behind steps that Spark evaluates or where no operator stands before the sinks."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        writing = Writing(self._job)
        for batch in batches:
            writing.take_rows(batch.to_pylist())
        writing.finish()
        return iter(())
