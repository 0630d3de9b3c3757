"""The hold of a job on its topics: compaction leaves alone what the job may read again, and what a reader of its views may need.

A run holds the topics that it reads from the position of its last synced epoch: that is where a repair goes back to. It holds the topics of
its views from a place before which every record is of a synced epoch: a record of an epoch that is not committed must not remove the record
that it replaces, or a reader would find neither. A run that ends with nothing under way releases them, and one that crashes does not: the
next run takes over, or the job's directory is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.checkpoint.epoch_files import Checkpoint
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.log import Log

_Ends = Mapping[str, Mapping[int, int]]


class Holding:
    """Keeps the hold of one job; `reads` are the topics that it reads from the log, `views` those of its views."""

    def __init__(self, place: JobDirectory, log: Log, reads: Sequence[str], views: Sequence[str] = ()) -> None:
        self._place, self._log, self._reads, self._views = place, log, reads, views
        self._held: _Ends = {name: {} for name in views}
        self._seen = self._look()

    def begin(self) -> None:
        """Hold from the job's position. The hold of an earlier run stays: its last epochs may not be synced."""
        if not self._log.holds(self._place.name):
            # Nothing is under way, so that every record of a view is of a committed epoch.
            self._held = self._seen[1]
            self._hold(self._place.committed_plan())

    def move(self, plan: EpochPlan) -> None:
        """Hold from the end of an epoch that survives a power cut."""
        epoch, ends = self._seen
        # One epoch at a time is written: whatever was there when an epoch was the last committed one is of the next one, or older.
        if plan.epoch > epoch:
            self._held, self._seen = ends, self._look()
        self._hold(plan)

    def end(self) -> None:
        """Release if all planned epochs are finished and synced."""
        checkpoint = Checkpoint(self._place.checkpoint)
        if max(checkpoint.offsets, default=-1) == max(checkpoint.commits, default=-1):
            self._log.release(self._place.name)

    def _hold(self, plan: EpochPlan | None) -> None:
        """Hold from the end of an epoch; from the beginning if there is none."""
        positions = {} if plan is None else plan.positions
        reads = {self._log.topic(name).id: dict(positions.get(name, {})) for name in self._reads}
        views = {self._log.topic(name).id: dict(ends) for name, ends in self._held.items()}
        if found := {**views, **reads}:
            self._log.hold(self._place.name, found, self._place.record_file)

    def _look(self) -> tuple[int, _Ends]:
        """The ends of the views, and the last epoch that was committed after they were there."""
        topics = [self._log.topic(name) for name in self._views]
        ends = {
            topic.name: {index: self._log.partition(topic, index).state().visible for index in range(topic.partitions)} for topic in topics
        }
        return self._place.committed_epoch(), ends
