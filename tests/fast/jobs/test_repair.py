"""Checkpoints with torn and missing files: what is mended, by what outputs have, and what is refused."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

import headrace as hr
from headrace.connectors.output import Changes, Writer
from headrace.connectors.staging import Staging
from headrace.jobs.checkpoint import Checkpoint
from headrace.jobs.directory import JobDirectory
from headrace.jobs.outputs import create_outputs, outputs_of
from headrace.jobs.repair import refuse_a_damaged, repair
from headrace.spark.blob_files import BLOBS, shard_files
from tests.support.checkpoints import DAMAGES, IDS, checkpoint, cut, empty, flip, lose

Damage = Callable[[Path], None]
damages = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


class Job:
    """A job that has planned six epochs and done five of them, without Spark."""

    def __init__(self, home: Path) -> None:
        self.app = hr.App("clicks", home=home)
        clicks = self.app.stream("clicks", schema="n int")
        self.app.sink(clicks, hr.log("kept"))
        self.app.sink(clicks, hr.parquet(home / "files"), name="files")
        self.place = JobDirectory(home, "clicks")
        self.place.path.mkdir(parents=True)
        self.record = self.place.begin("plan", 2)
        self.path = self.place.checkpoint
        checkpoint(self.path, offsets=range(6), commits=range(5))
        create_outputs(self.app.log, self.app.plan(), 2)
        self.outputs = outputs_of(self.app.log, self.app.plan())

    def write(self, epoch: int, sink: str = "clicks.sink") -> None:
        self.outputs[sink].write(Writer(self.record.id, sink), epoch, Changes(pl.DataFrame({"n": [epoch]}, schema={"n": pl.Int32})), _never)

    def repair(self) -> list[str]:
        return repair(self.app.plan(), self.app.settings, self.app.log)

    def refuse(self) -> None:
        refuse_a_damaged(self.place, self.record, self.app.log)

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
    assert {epoch: offset["positions"] for epoch, offset in job.place.planned().items()} == {6: {"clicks": {"0": 60}}}
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
    assert [("planned anew" in step) for step in steps] == ([] if damage is lose else [True])
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
    job.outputs["clicks.accounting"].write(Writer(job.record.id, "clicks.accounting", 1), 6, Changes(row), _never)
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
    torn = job.path / "state" / "0" / "1" / f"5_{IDS[1]}.changelog"
    damage(torn)
    said = rf"the state as of epoch 5 stands on {torn.relative_to(job.path)}, which is (torn|missing): the job goes back to epoch 4,"
    if damage is flip:
        # A run looks at sizes only, as there may be much state: Spark finds this one.
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


def test_a_job_whose_state_is_torn_from_its_first_version_on_begins_again_if_it_has_all_offsets(job: Job) -> None:
    cut(job.path / "state" / "0" / "0" / f"1_{IDS[0]}.changelog")
    (step,) = job.repair()
    assert "the job goes back to the beginning" in step
    assert job.numbers == ([0], [])
    assert sorted(job.place.planned()) == [2, 3, 4, 5, 6]


def test_a_snapshot_stands_for_all_versions_before_it_and_on_the_files_it_shares(job: Job) -> None:
    place = job.path / "state" / "0" / "0"
    (place / f"1_{IDS[0]}.changelog").unlink()
    (place / "SSTs").mkdir()
    (place / "SSTs" / "8-ab.sst").write_bytes(bytes(100))
    described = {"sstFiles": [{"localFileName": "8.sst", "dfsSstFileName": "8-ab.sst", "sizeBytes": 100}]}
    with zipfile.ZipFile(place / f"3_{IDS[0]}.zip", "w") as archive:
        archive.writestr("metadata", f"v1\n{json.dumps(described)}")
    job.refuse()
    assert job.repair() == []
    cut(place / "SSTs" / "8-ab.sst")
    with pytest.raises(hr.JobError, match=r"8-ab\.sst, which is torn"):
        job.refuse()


@damages
def test_a_job_goes_back_behind_the_epoch_that_wrote_a_torn_blob(job: Job, damage: Damage) -> None:
    files = shard_files(job.path / BLOBS, 1, 0)
    whole, torn, _unfinished = (job.path / BLOBS / "1" / "0" / files.write(epoch, b"0" * 100) for epoch in (2, 4, 6))
    empty(_unfinished)
    job.refuse()
    assert job.repair() == []
    if damage is lose:
        # Only who reads it sees that it is not there, and says so.
        torn.unlink()
        job.refuse()
        with pytest.raises(hr.JobError, match=rf"the state stands on .*{torn.name}, which is missing"):
            files.read(torn.name)
    else:
        damage(torn)
    said = rf"the state as of epoch 5 stands on blobs/1/0/{torn.name}, which is torn: the job goes back to epoch 3,"
    if damage is not flip:
        with pytest.raises(hr.JobError, match=said):
            job.refuse()
    (step,) = job.repair()
    assert re.search(said, step)
    assert job.numbers == ([0, 1, 2, 3], [0, 1, 2])
    job.refuse()
    assert files.read(whole.name) == b"0" * 100


def test_a_job_that_runs_is_not_repaired(job: Job) -> None:
    with job.place.held(), pytest.raises(hr.JobError, match="is running already"):
        job.repair()


def test_a_job_that_never_ran_has_nothing_to_repair(tmp_path: Path) -> None:
    app = hr.App("fresh", home=tmp_path)
    app.sink(app.stream("s", schema="n int"), hr.log("out"))
    with pytest.raises(hr.JobError, match="job 'fresh' has no checkpoint"):
        repair(app.plan(), app.settings, app.log)
