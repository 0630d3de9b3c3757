"""The files of a checkpoint that are synced while a job runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.checkpoint.journal import COMMITS, OFFSETS, RETAINED, Journal
from headrace.checkpoint.referenced_files import StateFiles
from headrace.checkpoint.shard_files import GRACE, WriterAttempt, all_files, shard_files
from headrace.checkpoint.shard_state import StoredShard
from headrace.jobs.directory import JobDirectory
from headrace.jobs.syncing import EPOCHS, EVERY, FURTHEST, CheckpointSync
from tests.support.checkpoints import checkpoint

LEVELS, SHARDS = 2, 2


class Job:
    """A job with two levels of state, whose every epoch puts a blob and takes that of three epochs before away."""

    def __init__(self, home: Path) -> None:
        self.now = 0.0
        self.place = JobDirectory(home, "clicks")
        self.files = StateFiles(self.place.checkpoint, LEVELS, SHARDS)
        self.lasting = CheckpointSync(self.place, self.files, lambda: self.now)
        self._stored = [
            StoredShard(shard_files(self.place.checkpoint, level, shard), 0) for level in range(1, LEVELS + 1) for shard in range(SHARDS)
        ]

    def run(self, epochs: int) -> None:
        for _ in range(epochs):
            epoch = self._stored[0].epoch + 1
            for stored in self._stored:
                stored.put(str(epoch), b"blob")
                stored.delete(str(epoch - 3))
                stored.finish({}, WriterAttempt())
            checkpoint(self.place.checkpoint, offsets=range(epoch - 1, epoch), commits=range(epoch - 1, epoch))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The inodes that were synced, in their order."""
    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(os.fstat(descriptor).st_ino))
    return iter([seen])


def _inode(path: Path) -> int:
    return path.stat().st_ino


def test_all_that_the_last_epoch_stands_on_is_synced_and_then_that_it_is_done(job: Job, synced: Iterator[list[int]]) -> None:
    (seen,) = synced
    job.run(4)
    job.lasting.sync()
    needed = list(job.files.needed(4))
    assert len(needed) == LEVELS * SHARDS * (1 + 3)
    commit = job.place.checkpoint / COMMITS / "3"
    order = {inode: place for place, inode in enumerate(seen)}
    for file in (*needed, commit):
        # A file that is whole is of no use as long as no directory names it for good.
        for directory in file.parents[:3]:
            assert order[_inode(file)] < order[_inode(directory)]
    assert max(order[_inode(file)] for file in needed) < order[_inode(commit)]
    assert _inode(job.place.path) in order


def test_what_was_synced_is_not_synced_again_and_what_nothing_stands_on_is_not_at_all(job: Job, synced: Iterator[list[int]]) -> None:
    (seen,) = synced
    job.run(4)
    job.lasting.sync()
    before = {_inode(path) for path in job.files.needed(4)}
    seen.clear()
    job.run(5)
    job.lasting.sync()
    fresh = {_inode(path) for path in job.files.needed(9)} - before
    assert {_inode(file.path) for file in all_files(job.place.checkpoint)} & set(seen) == fresh
    seen.clear()
    job.lasting.sync()
    assert seen == []


def test_a_job_that_runs_is_synced_now_and_then(job: Job, synced: Iterator[list[int]]) -> None:
    (seen,) = synced
    job.lasting.sync_if_due()
    assert seen == []
    job.run(1)
    job.lasting.sync_if_due()
    assert seen == []
    job.now += EVERY
    job.lasting.sync_if_due()
    assert seen


def test_an_entry_is_synced_with_its_checksum_and_all_directories_that_lead_to_it(job: Job, synced: Iterator[list[int]]) -> None:
    (seen,) = synced
    job.run(2)
    journal, offsets = Journal(job.place.checkpoint), job.place.checkpoint / OFFSETS
    journal.sync(OFFSETS, 1)
    for path in (offsets / "0", offsets / ".0.crc", offsets, job.place.checkpoint / "metadata", job.place.checkpoint, job.place.path):
        assert _inode(path) in seen
    seen.clear()
    journal.sync(OFFSETS, 2)
    assert seen == [_inode(path) for path in (offsets / "1", offsets / ".1.crc", offsets)]


def test_a_job_of_quick_epochs_is_synced_before_the_offset_of_its_last_synced_epoch_is_cleared_away(
    job: Job, synced: Iterator[list[int]]
) -> None:
    (seen,) = synced
    job.run(1)
    job.lasting.sync_if_due()
    seen.clear()
    job.run(EPOCHS - 1)
    job.lasting.sync_if_due()
    assert seen == []
    # A millisecond an epoch: the clock has hardly moved.
    job.run(1)
    job.lasting.sync_if_due()
    assert seen


def test_an_epoch_waits_for_a_sync_that_is_late(job: Job, synced: Iterator[list[int]]) -> None:
    (seen,) = synced
    for epoch in range(1, FURTHEST):
        job.run(1)
        job.lasting.keep_up(epoch)
    assert seen == []
    job.run(1)
    job.lasting.keep_up(FURTHEST)
    assert (job.place.path / "synced").read_text(encoding="ascii") == str(FURTHEST)
    assert seen
    # No epoch whose offset or state is cleared away was the last synced one, nor is one that a thread is still syncing.
    assert EPOCHS < FURTHEST < RETAINED < GRACE
