"""Files that tasks stage for one commit."""

from __future__ import annotations

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
