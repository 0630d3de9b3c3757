"""Checkpoints with torn and missing files: what is mended, by what outputs have, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

import polars as pl
import pytest

import headrace as hr
from headrace.checkpoint.epoch_files import Checkpoint
from headrace.checkpoint.referenced_files import StateFiles
from headrace.checkpoint.shard_files import SHARDS, WriterAttempt, all_files, manifests_of, shard_files
from headrace.checkpoint.shard_state import StoredShard
from headrace.connectors.output import Changes, Writer
from headrace.connectors.staging import Staging
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory
from headrace.jobs.repair import refuse_a_damaged, repair
from headrace.jobs.start.outputs import create_outputs, outputs_of
from tests.support.checkpoints import DAMAGES, checkpoint, cut, empty, flip, lose

Damage = Callable[[Path], None]
damages = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


class Job:
    """A job that has planned six epochs and done five of them, without Spark.

    The state as of each references a blob of its own and one of the epoch before it.
    """

    def __init__(self, home: Path) -> None:
        self.app = hr.App("clicks", home=home)
        clicks = self.app.stream("clicks", schema="n int")
        self.app.sink(clicks, hr.log("kept"))
        self.app.sink(clicks, hr.parquet(home / "files"), name="files")
        self.app.view("per_n", clicks.group("n", ttl=None).agg(clicks="count(*)"))
        self.place = JobDirectory(home, "clicks")
        self.place.path.mkdir(parents=True)
        self.record = self.place.begin("plan", 2)
        self.place.fix(self.record)
        self.path = self.place.checkpoint
        checkpoint(self.path, offsets=range(6), commits=range(5))
        self.levels = compiled(self.app.plan(), self.record.shards).levels
        for shard in range(self.record.shards):
            self._remember(StoredShard(shard_files(self.path, self.levels, shard), 0))
        create_outputs(self.app.log, self.app.plan(), 2)
        self.outputs = outputs_of(self.app.log, self.app.plan())

    def _remember(self, stored: StoredShard) -> None:
        for epoch in range(1, 6):
            stored.put(str(epoch), f"what epoch {epoch} changed".encode())
            stored.delete(str(epoch - 2))
            stored.finish({}, WriterAttempt())

    def write(self, epoch: int, sink: str = "clicks.sink") -> None:
        self.outputs[sink].write(Writer(self.record.id, sink), epoch, Changes(pl.DataFrame({"n": [epoch]}, schema={"n": pl.Int32})), _never)

    def repair(self) -> list[str]:
        return repair(self.app.plan(), self.app.settings)

    def refuse(self) -> None:
        refuse_a_damaged(self.place, self.record, StateFiles(self.path, self.levels, self.record.shards), self.app.log)

    @property
    def numbers(self) -> tuple[list[int], list[int]]:
        """The batches with an offset, and those with a commit, which all must be whole."""
        found = Checkpoint(self.path)
        assert None not in found.offsets.values()
        assert False not in found.commits.values()
        return sorted(found.offsets), sorted(found.commits)


def _never(*_: object) -> None:
    raise AssertionError("nothing is refused here")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.app.log.close()


def test_a_job_that_reads_its_source_twice_has_its_offset_twice(job: Job) -> None:
    checkpoint(job.path, offsets=range(6), commits=range(5), reads=2)
    job.refuse()
    assert job.repair() == []
    assert job.numbers == (list(range(6)), list(range(5)))


def test_a_whole_checkpoint_is_left_alone(job: Job) -> None:
    job.refuse()
    assert job.repair() == []
    assert job.numbers == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert job.place.planned() == {}


@damages
def test_an_epoch_whose_commit_is_torn_is_done_again_and_so_are_those_after_it_as_they_were(job: Job, damage: Damage) -> None:
    job.write(6)
    damage(job.path / "commits" / "4")
    with pytest.raises(hr.JobError, match=r"the checkpoint of job 'clicks' is damaged: the commit of epoch 5 is (torn|missing)"):
        job.refuse()
    (said,) = job.repair()
    assert "done again" in said
    # Spark does the epoch of batch 4 again; epoch 6, which an output has, comes back by the plan it had.
    assert job.numbers == ([0, 1, 2, 3, 4], [0, 1, 2, 3])
    assert {epoch: plan.positions for epoch, plan in job.place.planned().items()} == {6: {"clicks": {0: 60}}}
    assert job.repair() == []
    assert len(job.place.planned()) == 1
    job.refuse()


@damages
def test_the_last_commit_may_be_torn(job: Job, damage: Damage) -> None:
    lose(job.path / "offsets" / "5")
    damage(job.path / "commits" / "4")
    job.write(5)
    job.repair()
    # A missing one is an epoch on its way.
    assert job.numbers == ([0, 1, 2, 3, 4], [0, 1, 2, 3])


@damages
def test_an_epoch_whose_offset_is_torn_is_planned_anew_if_nobody_has_it(job: Job, damage: Damage) -> None:
    job.write(5)
    damage(job.path / "offsets" / "5")
    steps = job.repair()
    assert [("planned again" in step) for step in steps] == ([] if damage is lose else [True])
    assert job.numbers == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


@damages
@pytest.mark.parametrize("batch", [4, 5])
def test_an_epoch_whose_offset_is_gone_is_refused_if_an_output_has_it(job: Job, damage: Damage, batch: int) -> None:
    job.write(batch + 1)
    damage(job.path / "offsets" / str(batch))
    before = {file: file.read_bytes() for file in job.path.rglob("*") if file.is_file()}
    with pytest.raises(hr.JobError, match=rf"the offset of epoch {batch + 1} .* 'clicks.sink' \(epoch {batch + 1}\)"):
        job.repair()
    assert {file: file.read_bytes() for file in job.path.rglob("*") if file.is_file()} == before


def test_a_job_whose_accounting_is_ahead_of_its_checkpoint_does_not_start(job: Job) -> None:
    lose(job.path / "offsets" / "5")
    job.refuse()
    row = pl.DataFrame({"job": [job.record.id], "epoch": [6], "step": ["clicks"], "in": [10]})
    job.outputs["clicks.accounting"].write(Writer(job.record.id, "clicks.accounting", 1, tasks=2), 6, Changes(row), _never)
    with pytest.raises(hr.JobError, match=r"the offset of epoch 6 of job 'clicks' is torn or missing, and outputs have the epoch"):
        job.refuse()


def test_what_is_staged_of_an_epoch_that_is_planned_anew_is_forgotten(job: Job) -> None:
    for epoch in (5, 6):
        job.write(epoch, "files")
    empty(job.path / "offsets" / "5")
    job.repair()
    assert [epoch for epoch, _ in Staging(job.outputs["files"].staged_in, job.record.id, "files").epochs(9)] == [5]  # type: ignore[attr-defined]


@damages
def test_a_query_without_its_id_gets_another(job: Job, damage: Damage) -> None:
    damage(job.path / "metadata")
    with pytest.raises(hr.JobError, match="the id of its query is torn or missing"):
        job.refuse()
    assert len(job.repair()) == 1
    assert Checkpoint(job.path).named
    assert job.repair() == []


def test_a_checkpoint_that_knows_no_state_is_refused_unless_it_has_all_offsets(job: Job) -> None:
    for batch in range(5):
        empty(job.path / "commits" / str(batch))
    assert len(job.repair()) == 5
    assert job.numbers == ([0], [])
    assert sorted(job.place.planned()) == [2, 3, 4, 5, 6]
    checkpoint(job.path, offsets=range(3, 6), commits=range(0))
    for batch in (0, 3, 4):
        (job.path / "offsets" / str(batch)).unlink(missing_ok=True)
    with pytest.raises(hr.JobError, match=r"no epoch of .* has its offset, its commit and its state whole"):
        job.repair()


@damages
def test_a_job_whose_state_is_torn_goes_back_to_the_last_epoch_whose_state_is_whole(job: Job, damage: Damage) -> None:
    job.write(6)
    torn = next(file.path for file in all_files(job.path) if file.epoch == 5 and file.attempt is None)
    damage(torn)
    said = rf"the state as of epoch 5 references {torn.relative_to(job.path)}, which is (torn|missing): the job goes back to epoch 4,"
    if damage is flip:
        # A run looks at sizes only, as there may be much state: who reads it sees this.
        job.refuse()
    else:
        with pytest.raises(hr.JobError, match=said):
            job.refuse()
    (step,) = job.repair()
    assert re.search(said, step)
    assert job.numbers == ([0, 1, 2, 3, 4], [0, 1, 2, 3])
    assert sorted(job.place.planned()) == [6]
    job.refuse()
    assert job.repair() == []


@damages
def test_a_manifest_may_be_torn(job: Job, damage: Damage) -> None:
    damage(next(file.path for file in all_files(job.path) if file.epoch == 5 and file.attempt is not None))
    said = r"the state as of epoch 5 references shards/@0.1/\d/5-manifest.*, which is (torn|missing): the job goes back to epoch 4,"
    with pytest.raises(hr.JobError, match=said):
        job.refuse()
    (step,) = job.repair()
    assert re.search(said, step)
    assert job.numbers == ([0, 1, 2, 3, 4], [0, 1, 2, 3])


def test_files_that_no_state_stands_on_any_more_may_be_torn(job: Job) -> None:
    for file in all_files(job.path):
        if file.epoch < 4:
            empty(file.path)
    job.refuse()
    assert job.repair() == []


def test_a_job_goes_back_behind_all_epochs_that_stand_on_a_torn_file(job: Job) -> None:
    cut(next(file.path for file in all_files(job.path) if file.epoch == 4 and file.attempt is None))
    (step,) = job.repair()
    # The state of epoch 5 references what epoch 4 wrote.
    assert "the job goes back to epoch 3, whose state is whole" in step
    assert job.numbers == ([0, 1, 2, 3], [0, 1, 2])


def test_a_job_whose_state_is_gone_begins_again_if_it_has_all_offsets(job: Job) -> None:
    rmtree(job.path / SHARDS / manifests_of(1, 0) / "1")
    (step,) = job.repair()
    assert "the job goes back to the beginning" in step
    assert job.numbers == ([0], [])
    assert sorted(job.place.planned()) == [2, 3, 4, 5, 6]


def test_a_job_that_runs_is_not_repaired(job: Job) -> None:
    with job.place.held(), pytest.raises(hr.JobError, match="is running already"):
        job.repair()


def test_a_job_that_never_ran_has_nothing_to_repair(tmp_path: Path) -> None:
    app = hr.App("fresh", home=tmp_path)
    app.sink(app.stream("s", schema="n int"), hr.log("out"))
    with pytest.raises(hr.JobError, match="job 'fresh' has no checkpoint"):
        repair(app.plan(), app.settings)
