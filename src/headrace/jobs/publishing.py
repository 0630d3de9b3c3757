"""Publication of the epochs that a job's tasks staged, once each epoch is done."""

from __future__ import annotations

from headrace.connectors.staged_output import StagedOutput
from headrace.core import failpoints
from headrace.jobs.directory import JobDirectory
from headrace.spark.job import Job


class Publisher:
    """Publishes what a job has committed. The next run publishes an epoch that was cut off before."""

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
            return
        # Waiting epochs become due without a new epoch, too.
        for name, staged in self._staged().items():
            if staged.waits:
                staged.publish(self._job.id, name, epoch)

    def finish(self) -> None:
        """Publish all that Spark has committed: the run ends."""
        self.publish()
        for name, staged in self._staged().items():
            staged.finish(self._job.id, name, self._epoch)

    def _staged(self) -> dict[str, StagedOutput]:
        return {name: output for name, output in self._job.outputs.items() if isinstance(output, StagedOutput)}
