"""The loop of small epochs: jobs share the cores of one Spark, a dead task stops the loop, and Spark's own query continues."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headrace as hr
from headrace.checkpoint.journal import COMMITS, OFFSETS, Journal, batches
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.quick_epochs import ONE, SEVERAL
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.jobs.start.restarts import may_pass
from headrace.plan.explain import identity
from headrace.spark import query as spark_query
from headrace.spark.epoch_planning import EpochPlanning
from headrace.spark.loop import resident_task
from headrace.spark.loop.epoch_loop import EpochLoop
from headrace.spark.loop.resident_task import ResidentTask
from tests.support.processes import PATIENCE, until


class Counting:
    """An app that counts by key, and its job in a Spark that runs."""

    def __init__(self, home: Path, name: str = "counting", deadly: Path | None = None) -> None:
        """With `deadly`, a file that is there dies with the task that reads the second epoch."""
        self.app = hr.App(name, home=home)
        numbers = self.app.stream(f"{name}_numbers", "key string, n bigint")
        if deadly is not None:
            numbers = numbers.score(partial(_scored_once, deadly), inputs="n", output="same")
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
    def running(
        self, spark: SparkSession, quick_rows: int = 1_000, rows: int | None = None, keep_up: Callable[[int], None] = lambda _: None
    ) -> Iterator[spark_query.Query]:
        plan = self.app.plan()
        record = self.place.begin(identity(plan), 2)
        self.place.fix(record)
        create_outputs(self.app.log, plan, record.tasks)
        self.place.next_run()
        job = job_of(plan, record, self.app.log, until=None, bounds=Bounds(rows, quick=quick_rows))
        query = spark_query.start(spark, job, self.place.checkpoint, keep_up)
        try:
            yield query
        finally:
            query.stop()

    def check(self) -> None:
        rows = {row["key"]: (row["seen"], row["total"]) for row in self.app.read(f"{self._name}_sums").to_pylist()}
        members = {f"k{rest}": range(rest, self._sent, 3) for rest in range(min(3, self._sent))}
        assert rows == {key: (len(numbers), sum(numbers)) for key, numbers in members.items()}

    def epochs(self, kind: str) -> list[int]:
        """The epochs with an entry in the journal."""
        return sorted(batch + 1 for batch in batches(self.place.checkpoint, kind))

    @property
    def tasks(self) -> str:
        plan = self.place.committed_plan()
        assert plan is not None
        return plan.tasks


def _scored_once(deadly: Path, numbers: pa.Table) -> pa.ChunkedArray:
    armed = deadly.with_suffix(".armed")
    if armed.exists():
        armed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if deadly.exists():
        deadly.rename(armed)
    return numbers.column("n")


class Commits:
    """The commits of the loop, which wait to be let go on, or fail; and the epochs that the task was told to read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, full: int = 0) -> None:
        """The disk is full when epoch `full` is committed."""
        self.begun, self.read, self.may_end = list[int](), list[int](), threading.Event()
        commit, read = Journal.commit, ResidentTask.read

        def held_commit(journal: Journal, epoch: int) -> None:
            self.begun.append(epoch)
            assert self.may_end.wait(PATIENCE)
            if epoch == full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            commit(journal, epoch)

        def noted_read(task: ResidentTask, plan: EpochPlan, before: EpochPlan) -> None:
            read(task, plan, before)
            self.read.append(plan.epoch)

        monkeypatch.setattr(Journal, "commit", held_commit)
        monkeypatch.setattr(ResidentTask, "read", noted_read)

    def reading(self, epoch: int) -> None:
        """Wait until an epoch is read while the one before it is committed."""
        until(lambda: self.begun[-1:] == [epoch - 1] and self.read[-1:] == [epoch])


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
    commits, job = Commits(monkeypatch), Counting(tmp_path)
    job.send(30)
    with job.running(spark, rows=10) as query:
        commits.reading(2)
        stored = job.epochs(OFFSETS)
        commits.may_end.set()
        query.processAllAvailable()
    assert stored == [1]
    job.check()


def test_the_next_epoch_is_not_stored_before_a_late_sync_of_a_committed_one_is_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, job, synced, may_end = Commits(monkeypatch), Counting(tmp_path), list[int](), threading.Event()

    def keep_up(epoch: int) -> None:
        synced.append(epoch)
        assert may_end.wait(PATIENCE)

    commits.may_end.set()
    job.send(30)
    with job.running(spark, rows=10, keep_up=keep_up) as query:
        until(lambda: synced == [1] and commits.read == [1, 2])
        known = job.epochs(COMMITS), job.epochs(OFFSETS)
        may_end.set()
        query.processAllAvailable()
    assert known == ([1], [1])
    assert synced == [1, 2, 3]
    job.check()


def test_an_epoch_that_was_read_is_forgotten_if_the_one_before_is_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Counting(tmp_path)
    job.send(40)
    with monkeypatch.context() as patches:
        commits = Commits(patches, full=1)
        with job.running(spark, rows=10) as query:
            commits.reading(2)
            commits.may_end.set()
            with pytest.raises(StreamingQueryException, match="No space left on device"):
                query.processAllAvailable()
    assert (job.epochs(OFFSETS), job.epochs(COMMITS)) == ([1], [])
    # What the next run reads is planned again: there is more by now, and an epoch may have more of it.
    job.send(20)
    with job.running(spark, rows=25) as query:
        query.processAllAvailable()
    job.check()


@pytest.mark.parametrize("full", [True, False])
def test_a_commit_that_fails_is_told_whatever_becomes_of_the_task_that_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    deadly = tmp_path / "deadly"
    deadly.touch()
    job = Counting(tmp_path, deadly=deadly)
    job.send(20)
    with monkeypatch.context() as patches:
        commits = Commits(patches, full=1 if full else 0)
        with job.running(spark, rows=10) as query:
            commits.reading(2)
            until(lambda: not any(tmp_path.glob("deadly*")))
            commits.may_end.set()
            with pytest.raises(StreamingQueryException) as error:
                query.processAllAvailable()
    assert ("No space left on device" in str(error.value)) is full
    assert may_pass(str(error.value)) is not full
    assert job.epochs(COMMITS) == ([] if full else [1])
    with job.running(spark, rows=10) as query:
        query.processAllAvailable()
    job.check()


def test_a_loop_that_is_stopped_during_a_commit_leaves_a_committed_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Counting(tmp_path)
    job.send(40)
    with monkeypatch.context() as patches:
        commits = Commits(patches)
        with job.running(spark, rows=10) as query:
            commits.reading(2)
            stopping = threading.Thread(target=query.stop)
            stopping.start()
            # What takes long is cut off.
            stopping.join(1)
            commits.may_end.set()
            stopping.join()
            assert query.exception() is None
    assert job.epochs(COMMITS)[:1] == [1]
    with job.running(spark, rows=10) as query:
        query.processAllAvailable()
    job.check()


def test_a_task_that_serves_one_epoch_only_runs_the_one_that_it_has_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_task, "_STRETCH", 0.0)
    job = Counting(tmp_path)
    job.send(30)
    with job.running(spark, rows=10) as query:
        query.processAllAvailable()
    job.check()
    assert job.epochs(COMMITS) == [1, 2, 3]


def test_small_and_large_epochs_are_planned_during_the_commits_of_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute, commit, planned_after = EpochLoop._compute, Journal.commit, EpochPlanning.next
    job, planned, counts = Counting(tmp_path), list[EpochPlan](), [200, 10, 10, 10, 10, 200, 10]

    def noted(planning: EpochPlanning, before: EpochPlan, rows: int | None) -> EpochPlan:
        plan = planned_after(planning, before, rows)
        planned.append(plan)
        return plan

    def more_meanwhile(loop: EpochLoop, before: EpochPlan, plan: EpochPlan) -> None:
        compute(loop, before, plan)
        if plan.epoch <= len(counts):
            job.send(counts[plan.epoch - 1])

    def slow_commit(journal: Journal, epoch: int) -> None:
        until(lambda: epoch > len(counts) or planned[-1].epoch > epoch)
        commit(journal, epoch)

    monkeypatch.setattr(EpochPlanning, "next", noted)
    monkeypatch.setattr(EpochLoop, "_compute", more_meanwhile)
    monkeypatch.setattr(Journal, "commit", slow_commit)
    job.send()
    with job.running(spark, quick_rows=50) as query:
        query.processAllAvailable()
    job.check()
    tasks = {plan.epoch: plan.tasks for plan in planned}
    assert list(tasks.values()) == [ONE, SEVERAL, SEVERAL, SEVERAL, "last", ONE, SEVERAL, SEVERAL]


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
