"""The last epoch of a job, by its own record, and of each view and sink, as the target itself says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.connectors.output import Writer
from headrace.core.durations import spelled
from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.start.outputs import outputs_of
from headrace.log import Log
from headrace.plan.plan import Plan

_PAUSE = 0.02


@dataclass(frozen=True)
class Epochs:
    """The last finished epoch of a job, and for each output the last one with changes for it."""

    job: int
    outputs: dict[str, int | None]
    """None where nothing came yet, or where the target stores no epochs."""

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each view and sink: output, epoch."""
        return [{"output": name, "epoch": epoch} for name, epoch in self.outputs.items()]


def wait_for(name: str, settings: Settings, epoch: int, patience: timedelta) -> None:
    """Return when a job has finished an epoch: then every task has written its results."""
    place, deadline = JobDirectory(settings.home, name), time.monotonic() + patience.total_seconds()
    while (reached := place.committed_epoch()) < epoch:
        if time.monotonic() > deadline:
            raise JobError(
                f"job {name!r} has not come to epoch {epoch} within {spelled(patience)}: it is at {reached}",
                hint="is it running, and has it records to take in? wait longer with timeout=",
            )
        time.sleep(_PAUSE)


def epochs_of(plan: Plan, settings: Settings) -> Epochs:
    """Ask every output of a plan's job; before its first run there is nothing to ask."""
    place = JobDirectory(settings.home, plan.name)
    record = place.record()
    if record is None:
        return Epochs(0, dict.fromkeys(output.name for output in plan.outputs))
    with Log(settings.home / "log") as log:
        outputs, found = outputs_of(log, plan), dict[str, int | None]()
    for declared in plan.outputs:
        writers = [Writer(record.id, declared.name, task) for task in range(record.tasks)]
        epochs = [outputs[declared.name].last_epoch(writer) for writer in writers]
        found[declared.name] = max((epoch for epoch in epochs if epoch is not None), default=None)
    return Epochs(place.committed_epoch(), found)
