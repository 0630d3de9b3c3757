"""One run of a job: from where it stopped, until it has caught up, the input has ended, or somebody stops it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import StreamingQueryException

from headrace.connectors.log.input import LogInput
from headrace.core.errors import PlanError
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.failure import failure
from headrace.jobs.outputs import create_outputs, keys_of, topic_of
from headrace.jobs.progress import Observer, display
from headrace.jobs.report import Report, totals
from headrace.log import Log
from headrace.operators.compiler import compiled
from headrace.plan.explain import identity
from headrace.plan.plan import Plan
from headrace.spark import lane
from headrace.spark.job import Job
from headrace.spark.session import job_session

UNTIL = (None, "caught-up", "end")
_LOOK = 0.25


def run(plan: Plan, settings: Settings, log: Log, *, until: str | None = None, rows_per_epoch: int | None = None) -> Report:
    """Run the job of a plan, or go on with it where it stopped, and report when it ends."""
    if until not in UNTIL:
        raise PlanError(f"until={until!r} is not known", hint='"caught-up", "end", or None to run until stopped')
    began = time.monotonic()
    place = JobDirectory(settings.home, plan.name)
    with (
        place.held(), display(plan.name) as show, _stop_asked() as asked,
        job_session(settings, name=plan.name, output=place.spark_log) as spark,
    ):  # fmt: skip
        record = place.begin(identity(plan), spark.sparkContext.defaultParallelism)
        spark.conf.set("spark.sql.shuffle.partitions", str(record.tasks))
        create_outputs(log, plan, record.tasks)
        job = job_of(plan, record, log, until=until, rows_per_epoch=rows_per_epoch)
        observer = Observer(job.inputs)
        query = lane.start(spark, job, place.checkpoint)
        try:
            while not (query.awaitTermination(_LOOK) or asked.is_set()):  # type: ignore[arg-type] # a float does, against its annotation
                observer.learn(query.lastProgress)
                show(observer.look())
        except StreamingQueryException as error:
            raise failure(plan.name, error, place.spark_log) from error
        finally:
            query.stop()
        observer.learn(query.lastProgress)
    return Report(plan.name, observer.epoch, observer.watermark, time.monotonic() - began, totals(log, plan.name, record))


def job_of(plan: Plan, record: Record, log: Log, *, until: str | None, rows_per_epoch: int | None = None) -> Job:
    """The job of a plan on a log; its wall clock is the log's."""
    return Job(
        id=record.id,
        program=compiled(plan, record.shards),
        inputs={source.name: LogInput(log.path, source.name, tuple(source.columns.names), source.time) for source in plan.sources},
        watermarks={source.name: source.watermark for source in plan.sources},
        log=log.path,
        keys=keys_of(plan),
        tasks=record.tasks,
        rows_per_epoch=rows_per_epoch,
        until=until,
        clock=log.clock,
        topics={output.name: topic_of(output) for output in plan.outputs},
    )


@contextmanager
def _stop_asked() -> Iterator[threading.Event]:
    """Set when SIGTERM or Ctrl-C asks this process to stop; the epoch at work is then given up and done again by the next run."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
