"""The journal of a checkpoint that a loop of ours writes, in the form in which Spark reads it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headrace.checkpoint.epoch_files import Checkpoint, stored_plan
from headrace.checkpoint.journal import COMMITS, OFFSETS, RETAINED, Journal, batches, checksum_of, entry
from headrace.core.errors import JobError
from headrace.engine.planning.epoch_plan import EpochPlan
from tests.support.checkpoints import checkpoint, cut, flip


def planned(epoch: int) -> EpochPlan:
    return EpochPlan(epoch, {}, {"clicks": {0: 10 * epoch}}, {})


def text(epoch: int) -> str:
    return json.dumps(planned(epoch).to_json())


def test_an_epoch_that_the_loop_stores_is_read_like_one_of_spark(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.open()
    journal.plan(1, text(1))
    assert stored_plan(entry(tmp_path, OFFSETS, 0)) == planned(1)
    found = Checkpoint(tmp_path)
    assert (found.offsets, found.commits, found.named) == ({0: planned(1)}, {}, True)
    journal.commit(1)
    assert Checkpoint(tmp_path).commits == {0: True}


@pytest.mark.parametrize("damage", [cut, flip])
def test_a_damaged_entry_is_noticed_by_its_checksum(tmp_path: Path, damage: object) -> None:
    journal = Journal(tmp_path)
    journal.open()
    journal.plan(1, text(1))
    assert callable(damage)
    damage(entry(tmp_path, OFFSETS, 0))
    assert Checkpoint(tmp_path).offsets == {0: None}


def test_the_plan_of_an_epoch_is_synced_before_the_epoch_may_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, synced = Journal(tmp_path), set[int]()
    journal.open()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    journal.plan(1, text(1))
    file = entry(tmp_path, OFFSETS, 0)
    assert {file.stat().st_ino, file.parent.stat().st_ino} <= synced


def test_an_epoch_that_another_driver_has_planned_is_not_planned_again(tmp_path: Path) -> None:
    first, second = Journal(tmp_path), Journal(tmp_path)
    first.open()
    first.plan(1, text(1))
    with pytest.raises(JobError, match="epoch 1 is in the journal already"):
        second.plan(1, json.dumps(EpochPlan(1, {}, {"clicks": {0: 7}}, {}).to_json()))
    assert stored_plan(entry(tmp_path, OFFSETS, 0)) == planned(1)
    assert [file.name for file in (tmp_path / OFFSETS).iterdir()] == ["0"]


def test_as_many_entries_stay_as_spark_keeps(tmp_path: Path) -> None:
    checkpoint(tmp_path, offsets=range(150), commits=range(150))
    journal = Journal(tmp_path)
    journal.open()
    assert sorted(batches(tmp_path, OFFSETS)) == sorted(batches(tmp_path, COMMITS)) == list(range(50, 150))
    for epoch in range(151, 161):
        journal.plan(epoch, text(epoch))
        journal.commit(epoch)
    assert sorted(batches(tmp_path, OFFSETS)) == sorted(batches(tmp_path, COMMITS)) == list(range(60, 160))
    assert len(batches(tmp_path, OFFSETS)) == RETAINED
    assert not checksum_of(entry(tmp_path, OFFSETS, 59)).exists()
