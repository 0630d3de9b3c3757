"""The epochs of a running job, planned one after the other: their size and their tasks follow how long the last ones took."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from headrace.core import failpoints
from headrace.core.files.replacing import replace_text
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.epoch_size import EPOCH_ROWS, EpochSize
from headrace.engine.planning.planner import Ends
from headrace.engine.planning.quick_epochs import QuickEpochs
from headrace.spark.job import Job


class EpochPlanning:
    """Plans the epochs of one run of a job; with a checkpoint, the size that it chooses is written next to it."""

    def __init__(self, job: Job, checkpoint: Path | None = None) -> None:
        self._job = job
        self.planner = job.planner()
        self._quick = QuickEpochs(job.quick_rows)
        self._target: Ends | None = None
        self._moment: int | None = None
        self._size = None if job.rows_per_epoch is None else EpochSize(job.epoch_seconds, job.rows_per_epoch)
        self._shown = None if checkpoint is None else checkpoint.parent / EPOCH_ROWS
        self._begun: tuple[int, int, float] | None = None
        self._first: int | None = None

    def stop_at_present_records(self) -> None:
        """Plan nothing beyond the records that are present now."""
        self._target = self.planner.ends()
        # The present records are taken in as of one moment: a long run is not a silence of the stream.
        self._moment = self._job.clock.now()

    def next(self, before: EpochPlan, rows: int | None) -> EpochPlan:
        """The epoch after another, or that one itself if there is nothing to do; at most about `rows` records of each stream."""
        failpoints.reach("source.plan.before")
        again = self._job.planned.get(before.epoch + 1)
        if again is not None:
            return again
        took = self._measured(before.epoch)
        now = self._job.clock.now() if self._moment is None else self._moment
        plan = self.planner.next(before, now, self._bounded(before.epoch, took, rows), self._target)
        if plan is before:
            return before
        taken = [_records(plan, before, name) for name in plan.positions]
        plan = replace(plan, tasks=self._quick.tasks(sum(taken), None if took is None else took[1]))
        self._begun = (plan.epoch, max(taken, default=0), time.monotonic())
        # The first epoch of a run starts workers, too: it says nothing of its records.
        if self._first is None:
            self._first = plan.epoch
            if self._shown is not None:
                # What an earlier run chose holds no longer.
                self._shown.unlink(missing_ok=True)
        failpoints.reach("source.plan.after")
        return plan

    def tell(self, plan: EpochPlan) -> None:
        """Tell the inputs that the job has committed an epoch."""
        failpoints.reach("source.done.before")
        for name, position in plan.positions.items():
            self._job.inputs[name].done(position)

    def known(self, plan: EpochPlan) -> EpochPlan:
        """An epoch as it was planned; an earlier version of the app may have read other streams, too."""
        return plan.limited(self._job.inputs)

    def _measured(self, epoch: int) -> tuple[int, float] | None:
        """The records of the last epoch and its seconds, if it was planned just before: otherwise the job may have been idle since."""
        begun, self._begun = self._begun, None
        return (begun[1], time.monotonic() - begun[2]) if begun is not None and begun[0] == epoch != self._first else None

    def _bounded(self, epoch: int, took: tuple[int, float] | None, rows: int | None) -> int | None:
        """The most records that the next epoch takes in of a stream, by how long the one before it took."""
        if self._size is None or rows is None:
            return rows
        if took is not None:
            before = self._size.rows
            chosen = self._size.after(*took)
            if chosen != before and self._shown is not None:
                replace_text(self._shown, json.dumps({"rows": chosen, "why": self._size.why, "epoch": epoch}))
        return min(rows, self._size.rows)


def _records(plan: EpochPlan, before: EpochPlan, stream: str) -> int:
    start = before.positions.get(stream, {})
    return sum(end - start.get(partition, 0) for partition, end in plan.positions[stream].items())
