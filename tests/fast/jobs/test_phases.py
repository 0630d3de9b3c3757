"""The record of an epoch's phases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.jobs.facts.phases import Phases, phases_of


def report(epoch: int) -> dict[str, Any]:
    return {"batchId": epoch - 1, "durationMs": {"latestOffset": 1, "walCommit": 2, "addBatch": 3, "commitOffsets": 4}}


def test_a_line_that_a_full_disk_cut_off_costs_only_itself_and_the_next_one(tmp_path: Path) -> None:
    Phases(tmp_path).record([report(1)])
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text() + '{"epoch": 2, "lo')
    phases = Phases(tmp_path)
    phases.record([report(3)])
    phases.record([report(3), report(4)])
    assert phases_of(tmp_path) == {key: {"look": 0.001, "plan": 0.002, "compute": 0.003, "commit": 0.004} for key in (1, 4)}
