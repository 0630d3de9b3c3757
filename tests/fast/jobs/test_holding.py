"""The positions up to which a job holds the topics that it reads, and those of its views."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
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


class ViewJob(Job):
    """The same job with a view."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.topic = self.log.create_topic("totals", schema="n int", key="n", config={"cleanup.policy": "compact"})
        self.holding = Holding(self.place, self.log, [], ["totals"])

    def write(self, epoch: int) -> None:
        """Write an epoch of ten records without committing it."""
        records = pa.table({"n": pa.array(range(10), pa.int32())})
        self.log.append_epoch("totals", records, writer="job-0", epoch=epoch, partition=0, generation=1)

    def commit(self, epoch: int) -> EpochPlan:
        checkpoint(self.place.checkpoint, offsets=range(epoch), commits=range(epoch))
        plan = self.place.committed_plan()
        assert plan is not None
        return plan


@pytest.fixture
def view(tmp_path: Path) -> ViewJob:
    return ViewJob(tmp_path)


def test_records_of_a_view_are_held_until_their_epoch_is_synced(view: ViewJob) -> None:
    view.holding.begin()
    assert view.floor == 0
    view.write(1)
    first = view.commit(1)
    view.write(2)
    view.holding.move(first)
    assert view.floor == 0
    view.holding.move(view.commit(2))
    assert view.floor == 20


def test_records_of_a_view_that_a_crashed_run_did_not_commit_are_held_by_the_next_run(view: ViewJob) -> None:
    view.holding.begin()
    view.write(1)
    view.commit(1)
    view.write(2)
    after = Holding(view.place, view.log, [], ["totals"])
    after.begin()
    assert view.floor == 0
    after.move(view.commit(1))
    assert view.floor == 0
    after.move(view.commit(2))
    assert view.floor == 20
