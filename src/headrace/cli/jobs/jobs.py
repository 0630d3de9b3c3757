"""`headrace jobs`: the jobs of a home."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from headrace.cli import render
from headrace.cli.places import Home, log_at

if TYPE_CHECKING:
    from headrace.jobs.facts.listing import Listed


def jobs(home: Home = None, as_json: render.Json = False) -> None:
    """The jobs of a home: whether each runs and since when, its progress, and its last failure."""
    from headrace.core.settings import load_settings
    from headrace.jobs.facts.listing import jobs_of

    place = load_settings(home=home).home
    log = log_at(home) if (place / "log").is_dir() else None
    found = list(jobs_of(place, log))
    rows = [asdict(job) for job in found] if render.for_programs(as_json) else [_for_people(job) for job in found]
    render.table(rows, as_json=as_json, empty=f"no jobs in {place}", styles={"running": "green", "failed": "red", "killed": "red"})


def _for_people(job: Listed) -> dict[str, object]:
    """A row that fits a terminal; a failure that is not the present state has its time."""
    since = "" if job.since is None else f"{job.since:%Y-%m-%d %H:%M:%S}"
    earlier = f" (at {job.failed_at:%Y-%m-%d %H:%M:%S})" if job.failed_at is not None and job.failed_at != job.since else ""
    error = f"{job.last_error}{earlier}" if job.last_error else ""
    return {"job": job.job, "state": job.state, "since (UTC)": since, "epoch": job.epoch, "lag": job.lag, "last error": error}
