"""The loop of small epochs: jobs share the cores of one Spark, a dead task stops the loop, and Spark's own query continues."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headrace as hr
from headrace.checkpoint.journal import OFFSETS, Journal, batches
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.quick_epochs import ONE, SEVERAL
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.jobs.start.restarts import may_pass
from headrace.plan.explain import identity
from headrace.spark import query as spark_query
from headrace.spark.loop import resident_task
from headrace.spark.loop.epoch_loop import EpochLoop
from headrace.spark.loop.resident_task import ResidentTask
from tests.support.processes import PATIENCE, until


class Counting:
    """An app that counts by key, and its job in a Spark that runs."""

    def __init__(self, home: Path, name: str = "counting") -> None:
        self.app = hr.App(name, home=home)
        numbers = self.app.stream(f"{name}_numbers", "key string, n bigint")
        self.app.view(f"{name}_sums", numbers.group("key", ttl=None).agg(seen="count(*)", total="sum(n)"))
        self.place = JobDirectory(home, name)
        self.place.path.mkdir(parents=True)
        self._name, self._sent = name, 0

    def send(self, count: int = 10) -> None:
        with self.app.log.producer(linger=None) as producer:
            for n in range(self._sent, self._sent + count):
                producer.send(f"{self._name}_numbers", {"key": f"k{n % 3}", "n": n})
        self._sent += count

    @contextmanager
    def running(self, spark: SparkSession, quick_rows: int = 1_000, rows: int | None = None) -> Iterator[spark_query.Query]:
        plan = self.app.plan()
        record = self.place.begin(identity(plan), 2)
        self.place.fix(record)
        create_outputs(self.app.log, plan, record.tasks)
        self.place.next_run()
        job = job_of(plan, record, self.app.log, until=None, bounds=Bounds(rows, quick=quick_rows))
        query = spark_query.start(spark, job, self.place.checkpoint)
        try:
            yield query
        finally:
            query.stop()

    def check(self) -> None:
        rows = {row["key"]: (row["seen"], row["total"]) for row in self.app.read(f"{self._name}_sums").to_pylist()}
        members = {f"k{rest}": range(rest, self._sent, 3) for rest in range(min(3, self._sent))}
        assert rows == {key: (len(numbers), sum(numbers)) for key, numbers in members.items()}

    @property
    def tasks(self) -> str:
        plan = self.place.committed_plan()
        assert plan is not None
        return plan.tasks


def test_more_jobs_than_cores_all_get_their_turn(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_task, "_STRETCH", 1.0)
    jobs = [Counting(tmp_path, f"job{number}") for number in range(spark.sparkContext.defaultParallelism + 1)]
    with jobs[0].running(spark) as first, jobs[1].running(spark) as second, jobs[2].running(spark) as third:
        for _ in range(2):
            for job in jobs:
                job.send()
            for query in (first, second, third):
                query.processAllAvailable()
            for job in jobs:
                job.check()
                assert job.tasks == ONE


def test_a_job_goes_on_in_the_loop_where_a_query_of_spark_stopped_and_back(spark: SparkSession, tmp_path: Path) -> None:
    job, kinds = Counting(tmp_path), list[type]()
    for quick_rows in (1_000, 0, 1_000):
        with job.running(spark, quick_rows) as query:
            kinds.append(type(query))
            for _ in range(2):
                job.send()
                for _ in range(2):
                    query.processAllAvailable()
                job.check()
            assert job.tasks == (ONE if quick_rows else SEVERAL)
    assert kinds == [EpochLoop, StreamingQuery, EpochLoop]


def test_a_larger_epoch_runs_in_several_tasks_and_small_ones_in_one_again(spark: SparkSession, tmp_path: Path) -> None:
    job, tasks = Counting(tmp_path), list[str]()
    with job.running(spark, quick_rows=50) as query:
        for count in (10, 200, 10, 10, 10, 10):
            job.send(count)
            query.processAllAvailable()
            job.check()
            tasks.append(job.tasks)
    assert tasks == [ONE, SEVERAL, SEVERAL, SEVERAL, "last", ONE]


def test_an_epoch_is_read_while_the_one_before_is_committed_and_stored_after_that(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, read = Journal.commit, ResidentTask.read
    committing, may_commit, asked = threading.Event(), threading.Event(), list[int]()

    def slow_commit(journal: Journal, epoch: int) -> None:
        committing.set()
        assert may_commit.wait(PATIENCE)
        commit(journal, epoch)

    def noted_read(task: ResidentTask, plan: EpochPlan, before: EpochPlan) -> None:
        read(task, plan, before)
        asked.append(plan.epoch)

    monkeypatch.setattr(Journal, "commit", slow_commit)
    monkeypatch.setattr(ResidentTask, "read", noted_read)
    job = Counting(tmp_path)
    job.send(30)
    with job.running(spark, rows=10) as query:
        assert committing.wait(PATIENCE)
        until(lambda: asked[-1] == 2)
        stored = [batch + 1 for batch in batches(job.place.checkpoint, OFFSETS)]
        may_commit.set()
        query.processAllAvailable()
    assert stored == [1]
    job.check()


def test_a_task_that_dies_stops_the_loop_and_the_next_one_does_its_epoch_again(spark: SparkSession, tmp_path: Path) -> None:
    job, died = Counting(tmp_path), tmp_path / "died"

    def deadly(event: object, state: object) -> Iterator[dict[str, int]]:
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"n": 1}

    numbers = job.app.stream("deaths", "key string")
    job.app.view("deadly", numbers.process(deadly, by="key", state="n int", returns="n int", ttl=None, order="arrival"), key="n")
    with job.running(spark) as query:
        job.send()
        with job.app.log.producer() as producer:
            producer.send("deaths", {"key": "k"})
        with pytest.raises(StreamingQueryException) as error:
            query.processAllAvailable()
        assert may_pass(str(error.value))
        assert not query.isActive
    with job.running(spark) as query:
        query.processAllAvailable()
        job.check()
