"""`headrace jobs`, as a person and as a program sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from headrace.cli.commands import execute
from headrace.core.clock import ManualClock
from headrace.core.errors import JobError
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import recorded


def test_jobs_are_lines_of_json_in_a_pipe_and_a_table_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = JobDirectory(tmp_path, "shop")
    place.path.mkdir(parents=True)
    with pytest.raises(JobError), recorded(place, ManualClock()):
        raise JobError("the disk is full")
    assert execute(["jobs", "--home", str(tmp_path)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["job"], told["state"], told["since"], told["last_error"]) == ("shop", "failed", "2026-01-01T00:00:00Z", "the disk is full")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert execute(["jobs", "--home", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2026-01-01 00:00:00" in shown
    assert "the disk is full" in shown
