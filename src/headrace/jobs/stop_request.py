"""A stop that another process asks for: SIGTERM to the driver of a job, then a wait for its lock."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from headrace.core.errors import JobError
from headrace.core.processes import identity
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.last_run import LastRun

_LOOK = 0.1


@dataclass(frozen=True)
class Stopped:
    """The outcome of a stop. `process` is the driver that was told; None if the job was not running."""

    job: str
    process: int | None
    epoch: int
    last_error: str | None = None

    def __str__(self) -> str:
        if self.process is None:
            return f"job {self.job!r} is not running; its last epoch is {self.epoch:,}"
        failed = f"; it failed meanwhile: {self.last_error}" if self.last_error else ""
        return f"job {self.job!r} is stopped after epoch {self.epoch:,} (process {self.process}){failed}"


def stop(place: JobDirectory, wait: float) -> Stopped:
    """Tell the driver of a job to stop, and wait up to this many seconds for its end: the current epoch finishes first."""
    if not place.running():
        return Stopped(place.name, None, place.committed_epoch())
    driver = place.driver
    number = driver.partition("-")[0]
    if not number.isdecimal() or identity(int(number)) != driver:
        raise JobError(
            f"job {place.name!r} is running, and its driver is not a process of this machine{f': {driver}' if driver else ''}",
            hint="stop it where it runs",
        )
    try:
        os.kill(int(number), signal.SIGTERM)
    except PermissionError as error:
        raise JobError(f"process {number}, which runs job {place.name!r}, belongs to another user", hint="stop it as that user") from error
    deadline = time.monotonic() + wait
    while place.running():
        if time.monotonic() > deadline:
            raise JobError(
                f"job {place.name!r} was told to stop, and process {number} still runs after {wait:g} s",
                why="the current epoch finishes first",
                hint="wait longer (--wait), or ask again: a second signal stops at once, and the next run repeats the epoch",
            )
        time.sleep(_LOOK)
    run = LastRun.of(place)
    failed = run.last_error if run is not None and run.ended_at is not None and run.failed_at == run.ended_at else None
    return Stopped(place.name, int(number), place.committed_epoch(), failed)
