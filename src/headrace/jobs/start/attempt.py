"""One start of a job's query: its topics and record are created, and the query is watched until it ends, fails or is to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.checkpoint.referenced_files import StateFiles
from headrace.core import failpoints
from headrace.core.errors import HeadraceError
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.evolution.takeover import settled
from headrace.jobs.evolution.versions import Version
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.description import description_of
from headrace.jobs.facts.observer import Observer
from headrace.jobs.facts.phases import Phases
from headrace.jobs.publishing import Publisher
from headrace.jobs.repair import refuse_a_damaged, state_files
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.compaction_hold import Holding
from headrace.jobs.start.inputs import create_inputs
from headrace.jobs.start.outputs import create_outputs, has_topic, topics_of
from headrace.jobs.syncing import CheckpointSync
from headrace.log import Log
from headrace.plan.explain import identity
from headrace.plan.plan import Plan
from headrace.spark import query as spark_query
from headrace.spark.session import alive, on_cluster

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
        record = self._begun(spark)
        job = job_of(self.plan, record, self.log, until=until, bounds=bounds, epoch=self.place.committed_epoch())
        spark.conf.set("spark.sql.shuffle.partitions", str(record.tasks))
        with self._made(record):
            job = replace(job, generation=self.place.next_run(), planned=self.place.planned())
            holding = self._holding()
            accounting = JobAccounting(self.log, self.plan.name, record, self.place.accounting)
            publisher, checkpoint_sync = (
                Publisher(job, self.place),
                CheckpointSync(self.place, self._files(record), holding=holding, accounting=accounting),
            )
            holding.begin()
            # Epochs that the last run finished and did not publish.
            publisher.publish()
            description_of(self.plan).write(self.place.path)
            self.begins(record)
            failpoints.reach("job.start.before")
            query = spark_query.start(spark, job, self.place.checkpoint)
        try:
            self._attend(query, observer, publisher, checkpoint_sync)
        finally:
            failpoints.reach("job.stop.before")
            if alive():
                query.stop()
        publisher.finish()
        checkpoint_sync.finish()
        holding.end()
        observer.stand_at(self.place.committed_plan())
        observer.tell()

    def _holding(self) -> Holding:
        reads = [source.name for source in self.plan.sources if source.connector is None]
        return Holding(self.place, self.log, reads, [topic.name for topic in topics_of(self.plan) if topic.kind == "view"])

    def _begun(self, spark: SparkSession) -> Record:
        """The record of the job; not written yet if this is its first run."""
        topics = {topic.name: topic.kind for topic in topics_of(self.plan)}
        cores = spark.sparkContext.defaultParallelism
        record = self.place.begin(identity(self.plan), cores, cluster=on_cluster(spark), topics=topics)
        if not record.described:
            version, program = Version.first(self.plan), compiled(self.plan, record.shards)
            record = replace(record, described=version.described.to_json(), steps=version.steps(program), levels=program.levels)
        refuse_a_damaged(self.place, record, self._files(record), self.log)
        failpoints.reach("job.begin.after")
        return record

    @contextmanager
    def _made(self, record: Record) -> Iterator[None]:
        """Create topics, then the job's record. If the first start of a job is refused, both are removed: nothing was computed."""
        first = self.place.record() is None
        for topic in record.emptied:
            if has_topic(self.log, topic):
                self.log.delete_topic(topic)
        made = [*create_inputs(self.log, self.plan), *create_outputs(self.log, self.plan, record.partitions)]
        self.place.fix(record)
        settled(self.place, record)
        try:
            yield
        except HeadraceError:
            if first:
                self.place.unfix()
                for topic in made:
                    self.log.delete_topic(topic)
            raise

    def _attend(self, query: StreamingQuery, observer: Observer, publisher: Publisher, checkpoint_sync: CheckpointSync) -> None:
        """Watch a query until it ends or is to stop; then the epoch at work may finish, if that does not take too long."""
        phases = Phases(self.place.path)
        while not (_ended(query) or self.stop_asked.is_set()):
            report = query.lastProgress
            observer.learn(report)
            phases.note(report)
            publisher.publish()
            checkpoint_sync.sync_if_due()
            self.look(observer)
        at_work, deadline = query.lastProgress, time.monotonic() + _PATIENCE
        while query.isActive and query.status["isTriggerActive"] and query.lastProgress == at_work and time.monotonic() < deadline:
            _ended(query)

    def _files(self, record: Record) -> StateFiles:
        return state_files(self.plan, record, self.place.checkpoint)


def _ended(query: StreamingQuery) -> bool:
    """Whether a query has ended, after a short wait; the error that stopped it is raised."""
    return bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # a float does, against its annotation
