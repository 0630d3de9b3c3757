"""How far a job holds the topics that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.compaction_hold import Holding
from headrace.log import Log
from tests.support.checkpoints import checkpoint


class Job:
    def __init__(self, home: Path) -> None:
        self.log = Log(home / "log")
        self.topic = self.log.create_topic("clicks", schema="n int", config={"cleanup.policy": "compact"})
        self.place = JobDirectory(home, "job")
        self.place.path.mkdir(parents=True)
        self.place.fix(self.place.begin("plan", 1))
        self.holding = Holding(self.place, self.log, ["clicks"])

    @property
    def floor(self) -> int | None:
        held = self.log._holds.floor(self.log.partition(self.topic, 0))
        return None if held is None else held[0]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_new_job_holds_all_and_one_that_runs_what_came_after_its_last_synced_epoch(job: Job) -> None:
    job.holding.begin()
    assert job.floor == 0
    job.holding.move(EpochPlan(3, {}, {"clicks": {0: 17}}, {}))
    assert job.floor == 17


def test_a_run_that_follows_on_a_crash_holds_what_the_run_before_it_held(job: Job) -> None:
    job.holding.move(EpochPlan(3, {}, {"clicks": {0: 17}}, {}))
    Holding(job.place, job.log, ["clicks"]).begin()
    assert job.floor == 17


def test_a_run_that_ends_with_nothing_under_way_holds_nothing(job: Job) -> None:
    job.holding.begin()
    checkpoint(job.place.checkpoint, offsets=range(3), commits=range(2))
    job.holding.end()
    assert job.floor == 0
    checkpoint(job.place.checkpoint, offsets=range(3), commits=range(3))
    job.holding.end()
    assert job.floor is None
