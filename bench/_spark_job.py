"""Headrace's side of the engine's benchmarks: an app in a Spark that is running already."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from _payments import COLUMNS, PARTITIONS, append
from _processes import forget_peaks, peak_megabytes
from _runs import Run, epoch
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headrace as hr
from headrace.api.stream import Stream
from headrace.core.settings import Settings
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.log import LogTopic
from headrace.plan.topics import accounting_topic
from headrace.spark import query as spark_query

Declare = Callable[[Stream], Stream]
_AGGREGATES = {"n": "count(*)", "total": "sum(amount)"}


def tumbling(payments: Stream) -> Stream:
    return payments.window(hr.tumbling("1 minute"), by="card").agg(**_AGGREGATES)


def hopping(payments: Stream) -> Stream:
    return payments.window(hr.hopping("24 hours", every="1 minute"), by="card").agg(**_AGGREGATES)


def grouped(payments: Stream) -> Stream:
    return payments.group("card", ttl=None).agg(**_AGGREGATES)


class JobSide:
    """Runs apps over topics of payments, each with a view of its own."""

    name = "headrace"

    def __init__(self, spark: SparkSession, settings: Settings, cores: int) -> None:
        self._spark, self.settings, self._cores = spark, settings, cores
        self._numbers = itertools.count()

    def run(self, topic: str, declare: Declare, rows: int) -> Run:
        """Run an app over all that a topic has, with a given number of records an epoch."""
        app, view = self.app(topic, declare)
        with tempfile.TemporaryDirectory() as checkpoint:
            query, peak = self._finished(app, Path(checkpoint), rows)
        result = pl.from_arrow(app.read(view))
        assert isinstance(result, pl.DataFrame)
        app.log.delete_topic(view)
        return _run(app, query, result, peak)

    def facts(self, topic: str, declare: Declare, rows: int, bound: str = "10 seconds") -> Run:
        """The same for results that are facts: they are appended to a topic."""
        return self.facts_of((topic,), declare, rows, bound)

    def facts_of(self, topics: Sequence[str], declare: Callable[..., Stream], rows: int, bound: str = "10 seconds") -> Run:
        """The same over several topics."""
        number = next(self._numbers)
        app, sink = hr.App(f"ours-{number}", settings=self.settings), f"facts-{number}"
        app.sink(declare(*(self._stream(app, topic, bound) for topic in topics)), LogTopic(sink), name=sink)
        with tempfile.TemporaryDirectory() as checkpoint:
            query, peak = self._finished(app, Path(checkpoint), rows)
        result = pl.from_arrow(app.log.read(sink, columns=app.log.topic(sink).columns.names))
        assert isinstance(result, pl.DataFrame)
        app.log.delete_topic(sink)
        return _run(app, query, result, peak)

    def run_on(self, topic: str, declare: Declare, more: Iterator[pa.Table], rows: int) -> Run:
        """Run an app over all that a topic has, then over more, with a given number of records an epoch; only the second part counts."""
        app, view = self.app(topic, declare)
        with tempfile.TemporaryDirectory() as checkpoint:
            self._finished(app, Path(checkpoint), 10 * rows)
            append(app.log, topic, more)
            query, peak = self._finished(app, Path(checkpoint), rows)
        app.log.delete_topic(view)
        return _run(app, query, pl.DataFrame(), peak)

    def _finished(self, app: hr.App, checkpoint: Path, rows: int) -> tuple[StreamingQuery, float]:
        forget_peaks()
        query = self.start(app, checkpoint, "caught-up", rows)
        query.awaitTermination()
        return query, peak_megabytes()

    def app(self, topic: str, declare: Declare) -> tuple[hr.App, str]:
        """An app over a topic, and the name of its one view."""
        number = next(self._numbers)
        app = hr.App(f"ours-{number}", settings=self.settings)
        app.view(f"view-{number}", declare(self._stream(app, topic)))
        return app, f"view-{number}"

    def _stream(self, app: hr.App, topic: str, bound: str = "10 seconds") -> Stream:
        watermark = hr.bounded(bound, idle="1 hour")
        return app.stream(topic, schema=COLUMNS, key="card", time="at", watermark=watermark, partitions=PARTITIONS)

    def start(self, app: hr.App, checkpoint: Path, until: str | None, rows: int | None) -> StreamingQuery:
        """Start the job of an app as `App.run` does, but keep hold of Spark's query."""
        plan = app.plan()
        create_outputs(app.log, plan, self._cores)
        record = Record(app.name, 2 * self._cores, self._cores, "")
        # As `App.run` does for a run to an end: its epochs are large.
        bounds = Bounds(rows, quick=0 if until else self.settings.quick_rows)
        return spark_query.start(self._spark, job_of(plan, record, app.log, until=until, bounds=bounds), checkpoint)


def _run(app: hr.App, query: StreamingQuery, result: pl.DataFrame, peak: float) -> Run:
    epochs = [epoch(report, taken) for report in query.recentProgress if (taken := records(report))]
    return Run(epochs, result, _state_megabytes(app), peak)


def _state_megabytes(app: hr.App) -> float:
    """What a job's books say that its steps had in files, at most."""
    books = pl.DataFrame(pl.from_arrow(app.log.read(accounting_topic(app.name), columns=["epoch", "state_bytes"])))
    kept: int = books.group_by("epoch").sum()["state_bytes"].max()  # type: ignore[assignment]
    return kept / 2**20


def records(report: Mapping[str, Any]) -> int:
    """How many records an epoch took in: Spark counts packets, the offsets count records."""
    source = report["sources"][0]
    return _position(source["endOffset"]) - _position(source["startOffset"])


def _position(offset: str | None) -> int:
    known = json.loads(offset) if offset else None
    return sum(sum(positions.values()) for positions in known["positions"].values()) if known else 0
