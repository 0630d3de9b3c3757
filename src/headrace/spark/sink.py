"""The one writer of a job: views, topics, late records, dead letters and the accounting, each epoch once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.connectors.log.input import opened
from headrace.operators.accounting import Accounting
from headrace.operators.blob import decode
from headrace.operators.changes import OP, as_upserts
from headrace.operators.legible import key_text
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.worker import settle


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote: the counts of the epoch that came its way."""

    epoch: int | None = None
    counts: list[list[dict[str, Any]]] = field(default_factory=list)


class JobWriter(DataSourceStreamArrowWriter):
    """Appends each shard's part of an epoch to the topic of its target; an epoch that is there already is skipped."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        written = Written()
        parts: dict[tuple[str, int], list[pl.DataFrame]] = defaultdict(list)
        for batch in iterator:
            for row in batch.to_pylist():
                written.epoch = row["epoch"]
                if row["target"] == wire.COUNTS:
                    written.counts.append(json.loads(row["blob"]))
                elif row["target"] != wire.BEAT:
                    parts[row["target"], row["shard"]].append(decode(row["blob"]))
        for (target, shard), frames in sorted(parts.items()):
            assert written.epoch is not None
            self._append(target, shard, frames, written.epoch)
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        accounting = Accounting()
        epochs = set()
        for message in messages:
            if isinstance(message, Written) and message.epoch is not None:
                epochs.add(message.epoch)
                for counts in message.counts:
                    for row in counts:
                        ends = {("taken" if name == "in" else name): number for name, number in row.items() if name != "step"}
                        accounting.add(row["step"], **ends)
        accounting.settle(self._job.program.observed)
        accounting.check()
        for epoch in epochs:
            table = pa.Table.from_pylist([{"job": self._job.id, "epoch": epoch, **row} for row in accounting.rows()])
            if table.num_rows:
                opened(self._job.log).append_epoch(f"{self._job.name}.accounting", table, writer=self._job.id, epoch=epoch, partition=0)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        return

    def _append(self, target: str, shard: int, frames: list[pl.DataFrame], epoch: int) -> None:
        log = opened(self._job.log)
        topic = log.topic(self._job.topics.get(target, target))
        frame = pl.concat(frames, how="diagonal")
        key = self._job.keys.get(target, ())
        if key:
            if OP in frame.columns:
                frame = as_upserts(frame, key)
            frame = frame.with_columns(key_text(frame, key).cast(pl.Binary).alias("_key"))
            if OP in frame.columns:
                frame = frame.with_columns((pl.col(OP) < 0).alias("_tombstone"))
        wanted = [name for name in (*topic.columns.names, "_key", "_tombstone") if name in frame.columns]
        log.append_epoch(
            topic.name,
            frame.select(wanted).to_arrow(),
            writer=f"{self._job.id}/{target}/{shard}",
            epoch=epoch,
            partition=shard % topic.partitions,
        )


def job_sink(job: Job) -> type[DataSource]:
    """The data sink of a job, to be registered with Spark."""

    class JobSink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "headrace-sink"

        def streamWriter(self, schema: Any, overwrite: bool) -> JobWriter:
            settle()
            return JobWriter(job)

    return JobSink
