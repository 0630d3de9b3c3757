"""One attempt at a job's query: it is started, stage by stage, and watched until it ends, fails or is to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headrace.core import failpoints
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.facts.observer import Observer
from headrace.jobs.facts.phases import Phases
from headrace.jobs.start.assembly import Bounds
from headrace.jobs.start.query_stages import QueryStart, started
from headrace.log import Log
from headrace.plan.plan import Plan
from headrace.spark import query as spark_query
from headrace.spark.session import alive

_LOOK = 0.25
# A run that is to stop lets the epoch at work finish for this many seconds; the next run repeats an epoch that was cut off.
_PATIENCE = 6.0


@dataclass(frozen=True)
class Attempt:
    """A plan on a log and in a job's directory.

    `stop_asked` ends it, `begins` is called before the query starts, and `look` now and then.
    """

    plan: Plan
    log: Log
    place: JobDirectory
    stop_asked: threading.Event
    begins: Callable[[Record], None]
    look: Callable[[Observer], None]

    def run(self, spark: SparkSession, observer: Observer, until: str | None, bounds: Bounds) -> None:
        """Start the query and return when it has ended. The error that stopped it is raised."""
        start = started(QueryStart(self.plan, self.log, self.place, spark, until, bounds, self.begins))
        try:
            self._attend(start, observer)
        finally:
            failpoints.reach("job.stop.before")
            if alive():
                start.query.stop()
        start.publisher.finish()
        start.checkpoint_sync.finish()
        start.holding.end()
        observer.stand_at(self.place.committed_plan())
        observer.tell()

    def _attend(self, start: QueryStart, observer: Observer) -> None:
        """Watch a query until it ends or is to stop; then the epoch at work may finish, if that does not take too long."""
        phases, query = Phases(self.place.path), start.query
        while not (_ended(query) or self.stop_asked.is_set()):
            reports = spark_query.reports(query)
            if reports:
                observer.learn(reports[-1])
            phases.record(reports)
            start.publisher.publish()
            start.checkpoint_sync.sync_if_due()
            self.look(observer)
        phases.record(spark_query.reports(query))
        at_work, deadline = query.lastProgress, time.monotonic() + _PATIENCE
        while query.isActive and query.status["isTriggerActive"] and query.lastProgress == at_work and time.monotonic() < deadline:
            _ended(query)


def _ended(query: spark_query.Query) -> bool:
    """Whether a query has ended, after a short wait; the error that stopped it is raised."""
    return bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # a float does, against its annotation
