"""The jobs of a home in one table: a row for each job, and below it one for each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import read_description
from headrace.jobs.facts.listing import listed
from headrace.log import Log
from headrace.serve.status import JobStatus

_STEPS = ("in_rate", "out_rate", "late", "dead_letter", "state_rows", "state_bytes")


def told(place: JobDirectory, log: Log | None, status: JobStatus | None = None) -> dict[str, Any]:
    """All facts of a job; only its state if it never ran."""
    description = read_description(place.path)
    if description is not None and log is not None:
        return (status or JobStatus(log, place)).told(description)
    found = asdict(listed(place, log))
    return {"name": found.pop("job"), **found, "since": found["since"] and found["since"].isoformat(), "steps": [], "epochs": []}


class Overview:
    """Reads all jobs of a home again and again; each time costs only what came since the last one."""

    def __init__(self, home: Path, log: Log) -> None:
        self._home, self._log = home, log
        self._statuses: dict[str, JobStatus] = {}

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of the table now. In a row of a step, `job` is the job that has it."""
        folder = self._home / "jobs"
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.is_dir():
                place = JobDirectory(self._home, path.name)
                status = self._statuses.setdefault(path.name, JobStatus(self._log, place))
                yield from _rows(told(place, self._log, status))


def _rows(facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    steps = facts["steps"]
    yield {
        "job": facts["name"], "step": None, "state": facts["state"], "epoch": facts["epoch"], "in_rate": facts.get("in_rate", 0.0),
        "out_rate": facts.get("out_rate", 0.0), "lag": facts["lag"], "lag_seconds": facts["lag_seconds"],
        "watermark": facts.get("watermark"), "held_by": facts.get("held_by"), "late": facts.get("late", 0),
        "dead_letter": facts.get("dead_letter", 0), "state_rows": sum(step["state_rows"] or 0 for step in steps),
        "state_bytes": sum(step["state_bytes"] or 0 for step in steps),
    }  # fmt: skip
    for step in steps:
        if step["kind"] not in ("late", "dead"):
            none = dict.fromkeys(("epoch", "lag", "lag_seconds", "watermark", "held_by"))
            yield {"job": facts["name"], "step": step["name"], "state": step["kind"], **none, **{name: step[name] for name in _STEPS}}
