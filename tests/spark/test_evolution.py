"""A job on Spark that goes on as other versions of its app, and with other numbers of tasks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headrace as hr
from headrace.checkpoint.shard_files import all_files
from headrace.jobs.directory import JobDirectory
from headrace.jobs.evolution.takeover import rescale
from headrace.plan.evolution.comparison import REFUSED
from tests.support.evolving import Out, Spec, Step, drawn, edited, records
from tests.support.evolving_job import EvolvingJob
from tests.support.examples import seeds, soaked


class Job(EvolvingJob):
    """A job in this process, which takes in one batch a run."""

    def run(self, rows: list[dict[str, Any]], **options: Any) -> None:
        self.send(rows)
        self.app.run(until="caught-up", **options)


@pytest.mark.parametrize("seed", seeds(soaked(20, 8)))
def test_after_accepted_changes_views_are_those_of_a_run_from_the_beginning(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    job = Job(tmp_path, drawn(chance))
    job.run(records(chance, 0))
    for number in range(3):
        edit = edited(job.spec, chance, number)
        if job.changes(edit.spec).status == REFUSED:
            with pytest.raises(hr.JobError, match="rebuild"):
                edit.spec.declare(hr.App("evolving", home=tmp_path)).run(until="caught-up", accept=True)
            job.run(records(chance, 2 * number + 1))
        else:
            job.accept(edit.spec)
            job.run(records(chance, 2 * number + 1), accept=True)
        job.run(records(chance, 2 * number + 2))
        job.check()


def test_a_job_goes_on_with_another_number_of_tasks(spark: SparkSession, tmp_path: Path) -> None:
    spec = Spec(
        {
            "s0": Step("group", aggs=(("total", "sum(price)"), ("n", "count(*)"))), "s1": Step("tumbling", aggs=(("n", "count(*)"),)),
            "s2": Step("best", aggs=(("total", "sum(price)"),)), "s3": Step("session", aggs=(("n", "count(*)"),)),
        },
        {f"v{number}": Out(f"s{number}") for number in range(4)},
    )  # fmt: skip
    chance, job = random.Random(5), Job(tmp_path, spec)
    place = JobDirectory(tmp_path, "evolving")
    job.run(records(chance, 0))
    record = place.record()
    assert record is not None
    for epoch, (shards, tasks) in enumerate([(6 * record.tasks, 2 * record.tasks), (record.tasks, record.tasks)], start=1):
        with place.held():
            rescale(spec.app().plan(), place, shards=shards, tasks=tasks)
        job.run(records(chance, 2 * epoch))
        job.run(records(chance, 2 * epoch + 1))
        job.check()
        assert {int(file.path.parent.name) for file in all_files(place.checkpoint)} == set(range(shards))


def test_a_crash_while_state_is_taken_over_leaves_one_version_or_the_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggs = (("total", "sum(price)"), ("n", "count(*)"))
    before = Spec({"s0": Step("group", aggs=aggs), "s1": Step("early", aggs=aggs)}, {"v0": Out("s0"), "v1": Out("s1")})
    after = Spec({"s0": Step("group", aggs=aggs[1:]), "s1": before.steps["s1"]}, {"v0": Out("s0"), "v1": Out("s1"), "v2": Out("s0")})
    chance, job = random.Random(11), Job(tmp_path, before)
    job.run(records(chance, 0))

    def crash(place: JobDirectory, record: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(JobDirectory, "replace", crash)
        with pytest.raises(InterruptedError):
            after.declare(hr.App("evolving", home=tmp_path)).run(until="caught-up", accept=True)
    job.run(records(chance, 1))
    job.check()
    with monkeypatch.context() as patched:
        patched.setattr("headrace.jobs.evolution.takeover.remove_others", lambda layout: crash(JobDirectory(tmp_path, ""), layout))
        with pytest.raises(InterruptedError):
            after.declare(hr.App("evolving", home=tmp_path)).run(until="caught-up", accept=True)
    with pytest.raises(hr.JobError, match="rebuild"):
        job.run(records(chance, 2))
    job.accept(after)
    job.run(records(chance, 3))
    job.check()
    assert job.begins_with_a_snapshot("v2")
