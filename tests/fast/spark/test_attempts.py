"""State and outputs of an epoch come from one attempt, also if the user's function does not repeat itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.core import failpoints
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.spark.level import Level
from headrace.spark.source import JobReader

luck = 0


def add(event: Any, state: Any, timers: Any) -> dict[str, Any]:
    state.total = (state.total or 0) + luck
    return {"total": state.total}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[hr.App]:
    app = hr.App("lucky", home=tmp_path)
    clicks = app.stream("clicks", "user string", key="user")
    app.sink(clicks.process(add, by="user", state="total int", returns="total int", order="arrival", ttl=None), hr.log("totals"))
    create_outputs(app.log, app.plan(), 1)
    yield app
    failpoints.configure(None)


class Epochs:
    """The only level of the app, epoch by epoch, in attempts of several runs."""

    def __init__(self, app: hr.App, checkpoint: Path) -> None:
        self.job = job_of(app.plan(), Record("lucky-1", 1, 1, ""), app.log, until=None)
        self.checkpoint, self.run = checkpoint, 0
        self.start = JobReader(self.job).initialOffset()
        self.end = self.start

    def plan(self) -> None:
        self.start = self.end
        self.end = JobReader(self.job).latestOffset(self.start, ReadAllAvailable())

    def attempt(self, number: int) -> None:
        """Have the function add a number in an attempt of a new run."""
        global luck
        luck, self.run = number, self.run + 1
        job = replace(self.job, generation=self.run)
        reader = JobReader(job)
        batches = [batch for task in reader.partitions(self.start, self.end) for batch in reader.read(task)]
        list(Level(job, 1, self.checkpoint, writes=True)(batches))


def send(app: hr.App) -> None:
    with app.log.producer() as producer:
        producer.send("clicks", {"user": "ada"})


def totals(app: hr.App) -> list[int]:
    found: list[int] = app.log.read("totals")["total"].to_pylist()
    return found


def test_the_state_is_that_of_the_attempt_whose_output_counted(app: hr.App, tmp_path: Path) -> None:
    epochs = Epochs(app, tmp_path / "checkpoint")
    send(app)
    epochs.plan()
    epochs.attempt(1)
    epochs.attempt(100)
    send(app)
    epochs.plan()
    epochs.attempt(10)
    assert totals(app) == [1, 11]


def test_an_attempt_that_died_before_it_wrote_leaves_no_state_behind(app: hr.App, tmp_path: Path) -> None:
    epochs = Epochs(app, tmp_path / "checkpoint")
    send(app)
    epochs.plan()
    failpoints.configure("sink.write.before=error(EIO)")
    with pytest.raises(OSError, match="Input/output"):
        epochs.attempt(1)
    failpoints.configure(None)
    epochs.attempt(100)
    send(app)
    epochs.plan()
    epochs.attempt(10)
    assert totals(app) == [100, 110]
