"""The tally of a run: what its accounting topic says of late records and dead letters since the run began."""

from __future__ import annotations

from dataclasses import asdict

from headrace.engine.accounting import REASONS
from headrace.jobs.facts.progress import Missed
from headrace.log import Log
from headrace.plan.topics import accounting_topic

_COUNTS = ("late", "partly_late", "dead_letter")


class Tally:
    """Continues from the end of the topic, so that a query costs only what came since the last one."""

    def __init__(self, log: Log, app: str, job: str) -> None:
        self._job = job
        self._consumer = log.consumer(accounting_topic(app), start="end")
        self._missed = Missed()

    def read(self) -> Missed:
        """What was missed so far."""
        while (table := self._consumer.poll(timeout="0s", columns=("job", *_COUNTS, *REASONS))) is not None:
            for row in table.to_pylist():
                if row["job"] == self._job:
                    known = asdict(self._missed)
                    counts = {name: known[name] + row[name] for name in _COUNTS}
                    self._missed = Missed(**counts, **{name: known[name] or row[name] for name in REASONS})
        return self._missed
