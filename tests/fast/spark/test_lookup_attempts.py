"""An epoch that is repeated makes the same of its records, also if the system that it asks answers something else by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headrace as hr
from headrace.core import failpoints
from headrace.jobs.directory import Record
from headrace.jobs.start.assembly import job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.plan.topics import dead_topic
from headrace.spark.level import Level
from headrace.spark.source import JobReader

# What the remote system says; nothing: it cannot be reached.
says: list[str] = []
asked: list[str] = []


def remote(keys: pa.Table) -> list[dict[str, Any]]:
    asked.extend(keys["user"].to_pylist())
    if not says:
        raise ConnectionError("refused")
    return [{"user": key, "name": says[0]} for key in keys["user"].to_pylist()]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[hr.App]:
    app = hr.App("asking", home=tmp_path)
    clicks = app.stream("clicks", "user string", key="user")
    named = clicks.lookup(remote, on="user", returns="name string", retries=0, cache="0 seconds")
    app.sink(named, hr.log("named"))
    create_outputs(app.log, app.plan(), 1)
    yield app
    failpoints.configure(None)


class Epoch:
    """One epoch of the app with a record, in several attempts, each of a run of its own."""

    def __init__(self, app: hr.App, checkpoint: Path) -> None:
        self.app, self.checkpoint, self.run = app, checkpoint, 0
        with app.log.producer() as producer:
            producer.send("clicks", {"user": "ada"})
        self.job = job_of(app.plan(), Record("asking-1", 1, 1, ""), app.log, until=None)
        self.start = JobReader(self.job).initialOffset()
        self.end = JobReader(self.job).latestOffset(self.start, ReadAllAvailable())

    def attempt(self, *answer: str) -> int:
        """Attempt the epoch while the remote system says something, or nothing; returns how many keys it was asked for."""
        says[:], asked[:], self.run = answer, [], self.run + 1
        job = replace(self.job, generation=self.run)
        reader = JobReader(job)
        batches = [batch for task in reader.partitions(self.start, self.end) for batch in reader.read(task)]
        list(Level(job, 1, self.checkpoint, writes=True)(batches))
        return len(asked)

    def dies(self, point: str, *answer: str) -> None:
        failpoints.configure(f"{point}=error(EIO)")
        with pytest.raises(OSError, match="Input/output"):
            self.attempt(*answer)
        failpoints.configure(None)
        assert asked == ["ada"]

    def names(self) -> list[str]:
        found: list[str] = self.app.log.read("named")["name"].to_pylist()
        return found


def test_a_second_attempt_has_the_answers_of_the_first_and_does_not_ask(app: hr.App, tmp_path: Path) -> None:
    epoch = Epoch(app, tmp_path / "checkpoint")
    epoch.dies("sink.write.before", "first")
    assert epoch.attempt("second") == 0
    assert epoch.attempt("third") == 0
    assert epoch.names() == ["first"]


def test_a_third_attempt_has_the_answers_that_the_second_had_of_the_first(app: hr.App, tmp_path: Path) -> None:
    epoch = Epoch(app, tmp_path / "checkpoint")
    epoch.dies("sink.write.before", "first")
    failpoints.configure("sink.write.before=error(EIO)")
    with pytest.raises(OSError, match="Input/output"):
        epoch.attempt("second")
    failpoints.configure(None)
    assert epoch.attempt("third") == 0
    assert epoch.names() == ["first"]


def test_a_second_attempt_has_the_failures_of_the_first(app: hr.App, tmp_path: Path) -> None:
    epoch = Epoch(app, tmp_path / "checkpoint")
    epoch.dies("sink.write.before")
    assert epoch.attempt("second") == 0
    assert epoch.names() == []
    (reason,) = app.log.read(dead_topic("clicks"))["reason"].to_pylist()
    assert "ConnectionError: refused" in reason


def test_an_attempt_that_died_before_its_state_was_stored_has_written_nothing_and_the_next_one_asks(app: hr.App, tmp_path: Path) -> None:
    epoch = Epoch(app, tmp_path / "checkpoint")
    epoch.dies("state.file.before", "first")
    assert epoch.names() == []
    assert epoch.attempt("second") == 1
    assert epoch.names() == ["second"]
