"""A task acts on its input only when all of it is there: what is cut at any row is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.spark.counted_rows import CutInput, Inbox
from headrace.spark.job import Job
from headrace.spark.level import Level
from headrace.spark.source import JobReader
from headrace.spark.stage import Stage
from headrace.spark.wire import BEAT
from headrace.spark.writing import Written


def begun(home: Path, *, counted: bool) -> tuple[hr.App, Job]:
    app = hr.App("cut", home=home)
    clicks = app.stream("clicks", "url string")
    if counted:
        app.view("counts", clicks.group("url", ttl=None).agg(n="count(*)"))
    else:
        app.sink(clicks, hr.log("kept"))
    with app.log.producer() as producer:
        for number in range(40):
            producer.send("clicks", {"url": f"/{number}"})
    create_outputs(app.log, app.plan(), 1)
    return app, job_of(app.plan(), Record("cut-1", 3, 1, ""), app.log, until=None)


def stage_of(job: Job, home: Path, *, counted: bool) -> Stage:
    return Level(job, 1, home / "checkpoint", writes=True) if counted else Written(job, alone=False)


@pytest.mark.parametrize("counted", [True, False], ids=["a level", "a writer"])
def test_an_input_that_is_cut_at_any_row_changes_neither_state_nor_output(tmp_path: Path, counted: bool) -> None:
    app, job = begun(tmp_path, counted=counted)
    reader = JobReader(job)
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    rows = [batch.slice(place, 1) for task in tasks for batch in reader.read(task) for place in range(batch.num_rows)]
    assert len(rows) > 4
    target = "counts" if counted else "kept"
    for end in range(len(rows)):
        with pytest.raises(CutInput, match="nothing of it is written"):
            list(stage_of(job, tmp_path, counted=counted)(rows[:end]))
        assert app.log.read(target).num_rows == 0
        assert not [*(tmp_path / "checkpoint").rglob("*manifest*")]
    list(stage_of(job, tmp_path, counted=counted)(rows[::-1]))
    assert app.log.read(target).num_rows == 40


def test_rows_are_taken_in_the_order_of_their_readers_however_they_come(tmp_path: Path) -> None:
    app, _ = begun(tmp_path, counted=False)
    job = job_of(app.plan(), Record("cut-1", 3, 3, ""), app.log, until=None)
    reader = JobReader(job)
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    batches = [[row for batch in reader.read(task) for row in batch.to_pylist()] for task in tasks]
    assert len(batches) == 3

    def taken(order: list[list[dict[str, Any]]]) -> list[tuple[int, bytes]]:
        inbox = Inbox()
        for rows in order:
            inbox.take(rows)
        return [(shard, row["blob"]) for shard, rows in inbox.complete(range(3)).items() for row in rows if row["target"] != BEAT]

    assert taken(batches) == taken(batches[::-1]) == taken([batches[1], batches[2], batches[0]])
