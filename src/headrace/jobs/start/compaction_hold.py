"""The hold of a job on the topics that it reads: records that it may read again after a crash are not compacted.

A run holds its topics from the position of its last synced epoch: that is where a repair goes back to. A run that ends with nothing under
way releases them, and one that crashes does not: the next run takes over, or the job's directory is removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.checkpoint.epoch_files import Checkpoint
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.log import Log


class Holding:
    """Keeps the hold of one job; `topics` are those that it reads from the log."""

    def __init__(self, place: JobDirectory, log: Log, topics: Sequence[str]) -> None:
        self._place, self._log, self._topics = place, log, topics

    def begin(self) -> None:
        """Hold from the job's position. The hold of an earlier run stays: its last epochs may not be synced."""
        if not self._log.holds(self._place.name):
            self.move(self._place.committed_plan())

    def move(self, plan: EpochPlan | None) -> None:
        """Hold from the end of an epoch that survives a power cut; from the beginning if there is none."""
        positions = {} if plan is None else plan.positions
        found = {self._log.topic(name).id: dict(positions.get(name, {})) for name in self._topics}
        if found:
            self._log.hold(self._place.name, found, self._place.record_file)

    def end(self) -> None:
        """Release if all planned epochs are finished and synced."""
        checkpoint = Checkpoint(self._place.checkpoint)
        if max(checkpoint.offsets, default=-1) == max(checkpoint.commits, default=-1):
            self._log.release(self._place.name)
