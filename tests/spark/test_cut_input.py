"""A task that is canceled in the middle of its input: Python sees the stream end as if it was complete, and must write nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.core.errors import HeadraceError
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.spark import wire
from headrace.spark.job import Job
from headrace.spark.read_shares import Range
from headrace.spark.schema import DDL
from headrace.spark.source import JobReader, ReaderTask
from headrace.spark.stage import Stage
from headrace.spark.writing import Written

# Above what waits between the JVM and Python: the JVM has not sent all of it when the task is canceled.
SENDERS, SIZE = 40, 400_000
PATIENCE = 60.0


class Slow(Stage):
    """A writer that takes two rows, says so, and takes the rest when it may; at its end it says how many came."""

    def __init__(self, inner: Stage, directory: Path) -> None:
        self._inner, self._directory = inner, directory

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken = 0

        def slowly() -> Iterator[pa.RecordBatch]:
            nonlocal taken
            for batch in batches:
                taken += batch.num_rows
                yield batch
                if taken == 2:
                    (self._directory / "begun").touch()
                    until(self._directory / "go")

        try:
            list(self._inner.run(slowly()))
        except HeadraceError as error:
            (self._directory / "refused").write_text(str(error), encoding="utf-8")
        (self._directory / "ended").write_text(str(taken), encoding="ascii")
        return iter(())


def until(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} did not come"
        time.sleep(0.01)


def _cancel(spark: SparkSession) -> None:
    """Cancel the task, and wait until it is: on a busy machine it could take in everything before that."""
    spark.sparkContext.cancelJobGroup("cut")
    tracker, deadline = spark.sparkContext.statusTracker(), time.monotonic() + PATIENCE
    while tracker.getActiveJobsIds():
        assert time.monotonic() < deadline, "the job was not canceled"
        time.sleep(0.01)


@pytest.fixture
def one_record_a_batch(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.fixture
def patient(spark: SparkSession) -> Iterator[None]:
    """Spark kills the worker of a canceled task after two seconds, in which one on a busy machine may not have come to its end."""
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.python.task.killTimeout", f"{round(PATIENCE)}s")
    yield
    settings.remove("spark.python.task.killTimeout")


@pytest.mark.usefixtures("one_record_a_batch", "patient")
def test_a_writer_that_is_canceled_amid_its_input_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    app, chance = hr.App("cut", home=tmp_path), random.Random(20)
    app.sink(app.stream("texts", "n int, text string"), hr.log("kept"))
    with app.log.producer() as producer:
        for number in range(SENDERS):
            producer.send("texts", {"n": number, "text": chance.randbytes(SIZE).hex()})
    create_outputs(app.log, app.plan(), 1)
    job = job_of(app.plan(), Record("cut-1", 1, 1, ""), app.log, until=None)
    rows = _rows(job)
    frame = spark.createDataFrame(pa.Table.from_batches(rows, wire.SCHEMA), DDL).repartition(1)

    def work() -> None:
        spark.sparkContext.setJobGroup("cut", "a task to be canceled", interruptOnCancel=False)
        with pytest.raises((PySparkException, Py4JError)):
            frame.mapInArrow(Slow(Written(job, alone=False), tmp_path), DDL).collect()

    thread = threading.Thread(target=work)
    thread.start()
    until(tmp_path / "begun")
    _cancel(spark)
    (tmp_path / "go").touch()
    until(tmp_path / "ended")
    thread.join(PATIENCE)
    taken = int((tmp_path / "ended").read_text(encoding="ascii"))
    assert 2 <= taken < len(rows)
    assert app.log.read("kept").num_rows == 0
    assert "nothing of it is written" in (tmp_path / "refused").read_text(encoding="utf-8")


def _rows(job: Job) -> list[pa.RecordBatch]:
    """What many readers of one record each send to one shard: packets, counts and beats."""
    reader = JobReader(job)
    start = reader.initialOffset()
    [planned] = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    _, _, moment, limits = planned.value
    tasks = [ReaderTask((n, SENDERS), [Range("texts", 0, n, n + 1)], moment, limits) for n in range(SENDERS)]
    return [batch.slice(place, 1) for task in tasks for batch in reader.read(task) for place in range(batch.num_rows)]
