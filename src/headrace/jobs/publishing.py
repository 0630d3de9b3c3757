"""Lets readers see the epochs that a job's tasks staged, once each epoch is done with."""

from __future__ import annotations

from headrace.core import failpoints
from headrace.jobs.directory import JobDirectory
from headrace.spark.job import Job


class Publisher:
    """Publishes what a job has committed. An epoch that was cut off before is published by the next run."""

    def __init__(self, job: Job, place: JobDirectory) -> None:
        self._job, self._place = job, place
        self._epoch = 0

    def publish(self) -> None:
        """Publish up to the last epoch that Spark has committed."""
        epoch = self._place.committed_epoch()
        if epoch > self._epoch:
            failpoints.reach("job.publish.before")
            for name, output in self._job.outputs.items():
                output.publish(self._job.id, name, epoch)
            failpoints.reach("job.publish.after")
            self._epoch = epoch
