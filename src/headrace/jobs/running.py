"""One run of a job: from where it stopped, until it has caught up, the input has ended, or somebody stops it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from headrace.connectors.input import Input
from headrace.connectors.log.input import LogInput
from headrace.core import failpoints
from headrace.core.counts import counts
from headrace.core.durations import microseconds
from headrace.core.errors import PlanError
from headrace.core.settings import Settings
from headrace.core.where import caller
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.failure import failure
from headrace.jobs.lasting import Lasting
from headrace.jobs.outputs import create_outputs, outputs_of
from headrace.jobs.progress import Observer, Progress, display
from headrace.jobs.publishing import Publisher
from headrace.jobs.repair import refuse_a_damaged
from headrace.jobs.report import Report, hot_keys, state, totals
from headrace.jobs.state_files import StateFiles
from headrace.log import Log
from headrace.operators.compiler import compiled
from headrace.plan.explain import identity
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan
from headrace.spark import lane
from headrace.spark.job import Job, Packed
from headrace.spark.session import job_session, on_cluster

UNTIL = (None, "caught-up", "end")
# What an epoch takes in if nobody says how much: a job that is behind, as by a slow sink, needs no more memory than one that is not.
ROWS_PER_EPOCH = 4_000_000
_LOOK = 0.25
_PATIENCE = 30.0


class JobRun:
    """A job at work, in the thread that calls `run`; others may look at its progress and stop it."""

    def __init__(self, plan: Plan, settings: Settings, log: Log, *, config: Mapping[str, str] | None = None) -> None:
        self._plan, self._settings, self._log = plan, settings, log
        self._config = config
        self._stop_asked = threading.Event()
        self.progress: Progress | None = None

    def stop(self) -> None:
        """Ask the run to end after the epoch at work."""
        self._stop_asked.set()

    def run(self, until: str | None = None, rows_per_epoch: int | None = None) -> Report:
        """Begin the job, or go on with it where it stopped, and report when the run ends."""
        if until not in UNTIL:
            raise PlanError(f"until={until!r} is not known", hint='"caught-up", "end", or None to run until stopped', where=caller())
        if rows_per_epoch is not None and not counts(rows_per_epoch):
            raise PlanError(
                f"rows_per_epoch={rows_per_epoch!r} takes in nothing",
                hint="give a whole number above zero, or leave it out",
                where=caller(),
            )
        began, plan = time.monotonic(), self._plan
        place = JobDirectory(self._settings.home, plan.name)
        with (
            place.held(), display(plan.name) as show, _signals(self.stop),
            job_session(self._settings, name=plan.name, output=place.spark_log, config=self._config) as spark,
        ):  # fmt: skip
            record = place.begin(identity(plan), spark.sparkContext.defaultParallelism, cluster=on_cluster(spark))
            job = job_of(plan, record, self._log, until=until, rows_per_epoch=rows_per_epoch or ROWS_PER_EPOCH)
            files = StateFiles(place.checkpoint, job.program.levels, record.shards)
            refuse_a_damaged(place, record, files, self._log)
            failpoints.reach("job.begin.after")
            spark.conf.set("spark.sql.shuffle.partitions", str(record.tasks))
            create_outputs(self._log, plan, record.tasks)
            job = replace(job, generation=place.next_run(), planned=place.planned())
            observer = Observer(job.inputs, job.watermarks, lambda: hot_keys(self._log, plan.name))
            publisher, lasting = Publisher(job, place), Lasting(place, files)
            # What the last run finished and did not come to publish.
            publisher.publish()
            failpoints.reach("job.start.before")
            query = lane.start(spark, job, place.checkpoint)
            try:
                self._attend(query, observer, publisher, lasting, show)
            except StreamingQueryException as error:
                raise failure(plan.name, error, place.spark_log, sorted(job.program.observed)) from error
            finally:
                failpoints.reach("job.stop.before")
                query.stop()
            observer.learn(query.lastProgress)
            publisher.finish()
            lasting.sync()
            observer.tell()
        return Report(
            plan.name, observer.epoch, observer.watermark, time.monotonic() - began, totals(self._log, plan.name, record),
            observer.bounds, hot_keys(self._log, plan.name), state(self._log, plan.name, record),
        )  # fmt: skip

    def _attend(
        self, query: StreamingQuery, observer: Observer, publisher: Publisher, lasting: Lasting, show: Callable[[Progress], None]
    ) -> None:
        """Watch a query until it ends or is to stop; then the epoch at work may end, if that does not take too long."""
        while not (_ended(query) or self._stop_asked.is_set()):
            observer.learn(query.lastProgress)
            publisher.publish()
            lasting.sync_if_due()
            self.progress = observer.look()
            show(self.progress)
        # One that is cut off is done again by the next run.
        at_work, deadline = query.lastProgress, time.monotonic() + _PATIENCE
        while query.isActive and query.status["isTriggerActive"] and query.lastProgress == at_work and time.monotonic() < deadline:
            _ended(query)


def job_of(plan: Plan, record: Record, log: Log, *, until: str | None, rows_per_epoch: int | None = None) -> Job:
    """The job of a plan on a log; its wall clock is the log's."""
    return Job(
        id=record.id,
        name=plan.name,
        packed=Packed(compiled(plan, record.shards)),
        inputs={source.name: _input(source, plan.name, log) for source in plan.sources},
        watermarks={source.name: source.watermark for source in plan.sources},
        outputs=outputs_of(log, plan),
        keys={output.name: output.folds_by for output in plan.outputs},
        tasks=record.tasks,
        rows_per_epoch=rows_per_epoch,
        until=until,
        clock=log.clock,
        aligned={source.name: microseconds(source.align) for source in plan.sources if source.align is not None},
    )


def _input(source: Source, app: str, log: Log) -> Input:
    if source.connector is not None:
        found: Input = source.connector.input(source.columns, source.time, app)
        return found
    return LogInput(log.path, source.name, tuple(source.columns.names), source.time)


def _ended(query: StreamingQuery) -> bool:
    """Whether a query has ended, after a short wait for that; what stopped it is raised."""
    return bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type] # a float does, against its annotation


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C stop a run of the main thread, which alone gets them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
