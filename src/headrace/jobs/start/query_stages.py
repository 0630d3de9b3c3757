"""The stages of a query's start on Spark, in their order: a first start that is refused leaves no record and no topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from headrace.checkpoint.referenced_files import StateFiles
from headrace.core import failpoints
from headrace.core.errors import HeadraceError
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.evolution.takeover import settled
from headrace.jobs.evolution.versions import Version
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.description import description_of
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
from headrace.spark.job import Job
from headrace.spark.session import on_cluster


@dataclass
class QueryStart:
    """The start of a query at work. Each attribute without a value is set by one of the stages."""

    plan: Plan
    log: Log
    place: JobDirectory
    spark: SparkSession
    until: str | None
    bounds: Bounds
    begins: Callable[[Record], None]
    record: Record = field(init=False)
    job: Job = field(init=False)
    holding: Holding = field(init=False)
    publisher: Publisher = field(init=False)
    checkpoint_sync: CheckpointSync = field(init=False)
    query: spark_query.Query = field(init=False)

    @property
    def files(self) -> StateFiles:
        return state_files(self.plan, self.record, self.place.checkpoint)


def started(start: QueryStart) -> QueryStart:
    """Go through all stages; those after the record exist only with it."""
    for stage in BEFORE_THE_RECORD:
        stage(start)
    with _created(start):
        for stage in WITH_THE_RECORD:
            stage(start)
    return start


def plan_record(start: QueryStart) -> None:
    """The record of the job; not written yet if this is its first run."""
    topics = {topic.name: topic.kind for topic in topics_of(start.plan)}
    cores = start.spark.sparkContext.defaultParallelism
    record = start.place.begin(identity(start.plan), cores, cluster=on_cluster(start.spark), topics=topics)
    if not record.described:
        version, program = Version.first(start.plan), compiled(start.plan, record.shards)
        record = replace(record, described=version.described.to_json(), steps=version.steps(program), levels=program.levels)
    start.record = record


def refuse_damage(start: QueryStart) -> None:
    refuse_a_damaged(start.place, start.record, start.files, start.log)
    failpoints.reach("job.begin.after")


def assemble_job(start: QueryStart) -> None:
    epoch = start.place.committed_epoch()
    start.job = job_of(start.plan, start.record, start.log, until=start.until, bounds=start.bounds, epoch=epoch)


def set_tasks(start: QueryStart) -> None:
    start.spark.conf.set("spark.sql.shuffle.partitions", str(start.record.tasks))


def number_run(start: QueryStart) -> None:
    """Give the run its number, which fences the writers of earlier ones."""
    start.job = replace(start.job, generation=start.place.next_run(), planned=start.place.planned())


def choose_tasks(start: QueryStart) -> None:
    """Run to an end in several tasks if there is more to read than one is for: with one plan of Spark's, such an epoch costs less."""
    if start.until is not None and _next_records(start) > start.job.quick_rows:
        start.job = replace(start.job, quick_rows=0)


def hold_topics(start: QueryStart) -> None:
    reads = [source.name for source in start.plan.sources if source.connector is None]
    views = [topic.name for topic in topics_of(start.plan) if topic.kind == "view"]
    start.holding = Holding(start.place, start.log, reads, views)
    start.holding.begin()


def prepare_upkeep(start: QueryStart) -> None:
    accounting = JobAccounting(start.log, start.plan.name, start.record, start.place.accounting)
    start.checkpoint_sync = CheckpointSync(start.place, start.files, holding=start.holding, accounting=accounting)


def publish_finished(start: QueryStart) -> None:
    """Publish the epochs that the last run finished and did not publish."""
    start.publisher = Publisher(start.job, start.place)
    start.publisher.publish()


def write_description(start: QueryStart) -> None:
    description_of(start.plan).write(start.place.path)


def tell_the_run(start: QueryStart) -> None:
    start.begins(start.record)


def start_query(start: QueryStart) -> None:
    failpoints.reach("job.start.before")
    start.query = spark_query.start(start.spark, start.job, start.place.checkpoint, start.checkpoint_sync.keep_up)


BEFORE_THE_RECORD: tuple[Callable[[QueryStart], None], ...] = (plan_record, refuse_damage, assemble_job, set_tasks)
WITH_THE_RECORD: tuple[Callable[[QueryStart], None], ...] = (
    number_run,
    choose_tasks,
    hold_topics,
    prepare_upkeep,
    publish_finished,
    write_description,
    tell_the_run,
    start_query,
)


def _next_records(start: QueryStart) -> int:
    """About how many records the first epoch reads."""
    plan = start.place.committed_plan()
    read = {} if plan is None else plan.positions
    waiting = [
        end - read.get(name, {}).get(partition, 0) for name, source in start.job.inputs.items() for partition, end in source.end().items()
    ]
    return min(sum(waiting), start.bounds.rows or sum(waiting))


@contextmanager
def _created(start: QueryStart) -> Iterator[None]:
    """Create topics, then the job's record. If the first start of a job is refused, both are removed: nothing was computed."""
    log, place, record = start.log, start.place, start.record
    first = place.record() is None
    for topic in record.emptied:
        if has_topic(log, topic):
            log.delete_topic(topic)
    made = [*create_inputs(log, start.plan), *create_outputs(log, start.plan, record.partitions)]
    place.fix(record)
    settled(place, record)
    try:
        yield
    except HeadraceError:
        if first:
            place.unfix()
            for topic in made:
                log.delete_topic(topic)
        raise
