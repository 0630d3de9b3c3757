"""The durations of an epoch's phases, as a job reports them: one line for each epoch, in a file of the job's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.core.files.replacing import replace_text

_FILE = "phases.ndjson"
_MOST, _KEPT = 600, 300
PHASES: Mapping[str, tuple[str, ...]] = {
    "look": ("latestOffset", "getBatch"),
    "plan": ("queryPlanning", "walCommit"),
    "compute": ("addBatch",),
    "commit": ("commitOffsets", "commitBatch"),
}
"""The words for what Spark measures: look for input, plan the epoch, compute and write it, commit it."""


class Phases:
    """Records the phases of the reported epochs. Of Spark's own queries, some very short epochs are missed."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / _FILE
        self._epoch = 0
        self._lines = len(_lines(self._file))

    def record(self, reports: Sequence[Any]) -> None:
        """Record the reports on epochs that are not recorded so far."""
        fresh = [report for report in reports if report["batchId"] + 1 > self._epoch and "addBatch" in report["durationMs"]]
        if not fresh:
            return
        self._epoch = fresh[-1]["batchId"] + 1
        if self._lines >= _MOST:
            kept = _lines(self._file)[-_KEPT:]
            replace_text(self._file, "".join(f"{one}\n" for one in kept))
            self._lines = len(kept)
        with self._file.open("a", encoding="utf-8") as opened:
            opened.writelines(f"{json.dumps(_line(report))}\n" for report in fresh)
        self._lines += len(fresh)


def _line(report: Any) -> dict[str, float]:
    took = report["durationMs"]
    spent = {phase: round(sum(took.get(name, 0) for name in names) / 1000, 6) for phase, names in PHASES.items()}
    return {"epoch": report["batchId"] + 1, **spent}


def phases_of(directory: Path) -> dict[int, dict[str, float]]:
    """The seconds of each phase, by epoch; the last that were recorded."""
    found = [_parsed(line) for line in _lines(directory / _FILE)[-_KEPT:]]
    return {line.pop("epoch"): line for line in found if line is not None}


def _parsed(line: str) -> dict[str, Any] | None:
    """A recorded line; None for one that was cut off, as by a full disk, and what was written behind it."""
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return found


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
