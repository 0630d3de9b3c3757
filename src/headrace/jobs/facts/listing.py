"""The jobs of a home: which are running, since when, their progress, and what last stopped them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import LastRun
from headrace.log import Log
from headrace.log.errors import UnknownTopic


@dataclass(frozen=True)
class Listed:
    """One job as its directory and its lock tell it."""

    job: str
    state: str
    """running, stopped, failed, killed (it ended without a word), or never ran."""
    since: datetime | None
    """When it came into this state; None where nobody wrote that down."""
    epoch: int
    lag: int | None
    """The records that wait now; of streams outside the log as its run last saw them, None where it is not running."""
    lag_seconds: float | None
    """As its run last saw it."""
    last_error: str | None
    failed_at: datetime | None


def jobs_of(home: Path, log: Log | None) -> Iterator[Listed]:
    """All jobs of a home, by name."""
    directory = home / "jobs"
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_dir():
            yield listed(JobDirectory(home, path.name), log)


def listed(place: JobDirectory, log: Log | None) -> Listed:
    """One job, by its directory and its lock."""
    running, run = place.running(), LastRun.of(place)
    if run is None:
        state = "running" if running else "never ran" if place.record() is None else "stopped"
        return Listed(place.name, state, None, place.committed_epoch(), None, None, None, None)
    state = "running" if running else "killed" if run.ended_at is None else "failed" if run.failed_at == run.ended_at else "stopped"
    since = {"running": run.began_at, "killed": None}.get(state, run.ended_at)
    seen = run.progress if running else {}
    lag = seen.get("lag") if run.elsewhere or log is None else _waiting(place, run, log)
    return Listed(
        place.name, state, _moment(since), place.committed_epoch(), lag, seen.get("lag_seconds"), run.last_error, _moment(run.failed_at)
    )


def _waiting(place: JobDirectory, run: LastRun, log: Log) -> int | None:
    """The number of records of the log that the job has still to read."""
    plan, waiting = place.committed_plan(), 0
    for name in run.topics:
        try:
            topic = log.topic(name)
        except UnknownTopic:
            return None
        position = plan.positions.get(name, {}) if plan else {}
        for index in range(topic.partitions):
            state = log.partition(topic, index).state()
            waiting += state.visible - max(state.start, position.get(index, 0))
    return waiting


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
