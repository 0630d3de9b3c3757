"""The jobs of a home as their directories and locks tell them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.checkpoint.journal import COMMITS, OFFSETS
from headrace.core.clock import ManualClock, to_datetime
from headrace.core.errors import JobError
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import Recorder, recorded
from headrace.jobs.facts.listing import Listed, jobs_of
from headrace.jobs.facts.progress import Progress
from headrace.log import Log


def directory(home: Path, name: str = "shop") -> JobDirectory:
    place = JobDirectory(home, name)
    place.path.mkdir(parents=True)
    return place


def only(home: Path, log: Log | None = None) -> Listed:
    (found,) = jobs_of(home, log)
    return found


def test_a_job_is_running_as_long_as_a_driver_has_its_lock(tmp_path: Path) -> None:
    place, clock = directory(tmp_path), ManualClock()
    began = to_datetime(clock.now())
    with place.held(), recorded(place, clock) as recorder:
        recorder.record(Progress(3, None, 0, 9, 0.0, lag_seconds=2.5))
        clock.advance(timedelta(minutes=1))
        seen = only(tmp_path)
        assert (seen.state, seen.since, seen.lag, seen.lag_seconds, seen.last_error) == ("running", began, 9, 2.5, None)
        # Who asks does not shut out who wants to run it.
        assert only(tmp_path).state == "running"
    seen = only(tmp_path)
    assert (seen.state, seen.since, seen.lag) == ("stopped", began + timedelta(minutes=1), None)


def test_a_run_that_failed_is_listed_with_its_error_also_when_the_next_one_runs(tmp_path: Path) -> None:
    place, clock = directory(tmp_path), ManualClock()
    failed = to_datetime(clock.now())
    with pytest.raises(JobError), recorded(place, clock):
        raise JobError("job 'shop' stopped: the disk is full", why="nothing fits")
    assert (only(tmp_path).state, only(tmp_path).last_error) == ("failed", "job 'shop' stopped: the disk is full")
    clock.advance(timedelta(hours=1))
    with place.held(), recorded(place, clock):
        seen = only(tmp_path)
        assert (seen.state, seen.last_error, seen.failed_at) == ("running", "job 'shop' stopped: the disk is full", failed)
    assert only(tmp_path).state == "stopped"


def test_a_run_that_was_interrupted_is_stopped_and_not_failed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), recorded(directory(tmp_path), ManualClock()):
        raise KeyboardInterrupt
    assert (only(tmp_path).state, only(tmp_path).last_error) == ("stopped", None)


def test_a_run_that_ended_without_a_word_was_killed(tmp_path: Path) -> None:
    place = directory(tmp_path)
    Recorder(place, ManualClock())
    assert (only(tmp_path).state, only(tmp_path).since) == ("killed", None)


def test_a_job_that_stopped_has_the_records_waiting_that_came_since(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.create_topic("clicks", schema="n int")
    place, clock = directory(tmp_path), ManualClock()
    with recorded(place, clock) as recorder:
        recorder.reads(("clicks",), False)
    with log.producer() as producer:
        for n in range(5):
            producer.send("clicks", {"n": n})
    assert (only(tmp_path, log).epoch, only(tmp_path, log).lag) == (0, 5)
    for kind, text in ((OFFSETS, json.dumps(EpochPlan(7, {}, {"clicks": {0: 3}}, {}).to_json())), (COMMITS, "{}")):
        (place.checkpoint / kind).mkdir(parents=True)
        (place.checkpoint / kind / "6").write_text(f"v1\n{{}}\n{text}")
    assert (only(tmp_path, log).epoch, only(tmp_path, log).lag) == (7, 2)


def test_a_directory_of_a_job_that_never_ran_is_listed_as_that(tmp_path: Path) -> None:
    directory(tmp_path)
    assert only(tmp_path).state == "never ran"
    assert list(jobs_of(tmp_path / "elsewhere", None)) == []
