"""A crash on purpose, in development: SIGKILL for the driver of a job, or for one of its workers."""

from __future__ import annotations

import os

from headrace.core.errors import JobError
from headrace.core.processes import identity, kill, workers_of
from headrace.jobs.directory import JobDirectory

DRIVER, WORKER = "driver", "worker"


def crash(place: JobDirectory, what: str = DRIVER) -> int:
    """Kill the driver of a running job, or one of its workers, at once; returns the number of the process."""
    driver = place.driver
    if not place.running() or not driver:
        raise JobError(f"job {place.name!r} is not running", hint="start it: headrace run app.py")
    if driver == identity(os.getpid()):
        raise JobError(
            f"job {place.name!r} runs in the process of this server",
            why="both would end",
            hint="run the job in a process of its own: headrace run app.py, and headrace serve --development in another one",
        )
    victims = [driver] if what == DRIVER else workers_of(driver)
    for victim in victims:
        if kill(victim):
            return int(victim.partition("-")[0])
    raise JobError(f"job {place.name!r} has no {what} on this machine", hint="wait until it has started")
