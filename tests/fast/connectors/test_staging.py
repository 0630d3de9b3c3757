"""Files that tasks stage for one commit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors import staging
from headrace.connectors.output import Writer
from headrace.connectors.staging import Staging


def test_two_attempts_of_one_task_that_stage_at_once_leave_one_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, writer, table = Staging(tmp_path, "job", "sink"), Writer("job", "sink"), pa.table({"n": [1, 2, 3]})
    reach = staging.failpoints.reach

    def other_attempt(name: str) -> None:
        reach(name)
        if name == "stage.middle":
            monkeypatch.setattr(staging.failpoints, "reach", reach)
            place.put(writer, 1, table)

    monkeypatch.setattr(staging.failpoints, "reach", other_attempt)
    place.put(writer, 1, table)
    [(epoch, rows)] = place.epochs(1)
    assert (epoch, rows.to_pydict()) == (1, {"n": [1, 2, 3]})
    assert [file.name for file in (place.path / "1").iterdir()] == ["0-0.parquet"]


def test_a_staged_file_is_in_directories_that_survive_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting, fsync = dict[int, set[str]](), os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        found = os.fstat(descriptor).st_ino
        lasting[found] = set(os.listdir(descriptor)) if stat.S_ISDIR(os.fstat(descriptor).st_mode) else set()

    monkeypatch.setattr(os, "fsync", noted)
    place, table = Staging(tmp_path / "lake" / ".staged", "job", "sink"), pa.table({"n": [1, 2, 3]})
    for task, epoch in [(0, 1), (1, 1), (0, 2)]:
        place.put(Writer("job", "sink", task), epoch, table)
    assert len(place.files(2)) == 3
    for file in place.files(2):
        assert file.stat().st_ino in lasting
        for path in (file, *file.parents[:5]):
            assert path.name in lasting[path.parent.stat().st_ino], path
