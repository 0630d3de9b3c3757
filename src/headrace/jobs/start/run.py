"""One run of a job: from where it stopped, until it has caught up, the input has ended, or somebody stops it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException

from headrace.core.counts import counts
from headrace.core.errors import PlanError
from headrace.core.settings import Settings
from headrace.core.where import caller
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory, Record
from headrace.jobs.ending import ending
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.display import Show, display
from headrace.jobs.facts.failure import failure
from headrace.jobs.facts.job_log import own_log
from headrace.jobs.facts.last_run import Recorder, recorded
from headrace.jobs.facts.observer import Observer
from headrace.jobs.facts.progress import Missed, Progress
from headrace.jobs.facts.report import Report, hot_keys
from headrace.jobs.facts.tally import Tally
from headrace.jobs.start.assembly import Bounds
from headrace.jobs.start.attempt import Attempt
from headrace.jobs.start.restarts import Restarts, may_pass
from headrace.jobs.start.stages import STAGES, StartState
from headrace.jobs.stopping import stopped_by_signals
from headrace.log import Log
from headrace.ops.alerts.channels import Channels
from headrace.ops.alerts.watch import watching
from headrace.plan.plan import Plan
from headrace.spark.session import NotAwaited, alive, discard, job_session

UNTIL = (None, "caught-up", "flushed", "end")
# What an epoch takes in if nobody says how much: a job that is behind, as by a slow sink, needs no more memory than one that is not.
ROWS_PER_EPOCH = 4_000_000
_log = logging.getLogger(__name__)


class JobRun:
    """A job at work, in the thread that calls `run`; others may look at its progress and stop it."""

    def __init__(self, plan: Plan, settings: Settings, log: Log, *, config: Mapping[str, str] | None = None) -> None:
        self._plan, self._settings, self._log = plan, settings, log
        self._config = config
        self._place = JobDirectory(settings.home, plan.name)
        self._stop_asked = threading.Event()
        self._restarts = Restarts(settings.restarts)
        self._tally: Tally | None = None
        self.progress: Progress | None = None

    def stop(self) -> None:
        """Ask the run to end after the current epoch."""
        self._stop_asked.set()

    def run(
        self, until: str | None = None, rows_per_epoch: int | None = None, *, as_json: bool = False, accept_changes: bool = False
    ) -> Report:
        """Begin the job, or continue it where it stopped, and report when the run ends.

        With `accept_changes` it continues with another version of its app, if that needs no rebuild.
        """
        _check(until, rows_per_epoch)
        began, plan, log = time.monotonic(), self._plan, self._log
        with (
            stopped_by_signals(self.stop), self._place.held(), recorded(self._place, log.clock) as recorder,
            own_log(self._place, log.clock, as_json=self._settings.log_format == "json"),
            watching(lambda: [self._place], log, Channels(self._settings.alert_webhook, self._settings.alert_mail)),
            display(plan.name, log.clock, as_json=as_json) as show,
        ):  # fmt: skip
            start = StartState(plan, self._settings, log, self._place, recorder, until, accept_changes)
            for stage in STAGES:
                stage(start)
            watermarks = {source.name: source.watermark for source in plan.sources}
            observer = Observer(
                start.inputs,
                watermarks,
                hot_keys=lambda: hot_keys(log, plan.name),
                missed=self._missed,
                begins=self._place.committed_plan(),
            )
            attempt = Attempt(plan, log, self._place, self._stop_asked, self._begins, lambda observer: self._look(observer, show, recorder))
            settings = self._settings
            bounds = Bounds(rows_per_epoch or ROWS_PER_EPOCH, settings.epoch_bytes, settings.epoch_seconds, settings.quick_rows)
            while not (self._stop_asked.is_set() or self._ended(attempt, observer, until, bounds)):
                pass
            observer.stand_at(self._place.committed_plan())
            return self._report(observer, time.monotonic() - began)

    def _ended(self, attempt: Attempt, observer: Observer, until: str | None, bounds: Bounds) -> bool:
        """Run the query until it ends. False if it failed for a reason that may pass, and is to start again."""
        settings, output = self._settings, self._place.spark_log
        try:
            with job_session(
                settings, name=self._plan.name, output=output, config=self._config, stop_asked=self._stop_asked
            ) as spark:  # fmt: skip
                if spark.sparkContext.uiWebUrl is not None:
                    _log.warning("Spark serves its own pages at %s", spark.sparkContext.uiWebUrl)
                attempt.run(spark, observer, until, bounds)
        except NotAwaited:
            return True
        except StreamingQueryException as error:
            self._pause_after(error, passing=may_pass(str(error)))
            return False
        except (Py4JError, ConnectionError) as error:
            if alive():
                raise
            discard()
            self._pause_after(error, passing=True)
            return False
        except OSError as error:
            # A file of the job's directory could not be written or read by this process.
            self._pause_after(error, passing=may_pass(f"{type(error).__name__}: {error}"))
            return False
        return True

    def _pause_after(self, error: Exception, *, passing: bool) -> None:
        """Wait before a restart. What stopped the job is raised if a restart changes nothing, or if there were enough of them."""
        functions = sorted(compiled(self._plan, 1).observed)
        stopped = failure(self._plan.name, error, self._place.spark_log, functions)
        pause = self._restarts.pause(self._place.committed_epoch()) if passing else None
        if pause is None:
            raise stopped from error
        _log.warning("%s; restart %d in %g s", stopped.fact, self._restarts.count, pause)
        self._stop_asked.wait(pause)

    def _begins(self, record: Record) -> None:
        """Count what is missed from now on: the accounting is there, and the query has not started."""
        if self._tally is None:
            self._tally = Tally(self._log, self._plan.name, record.id)

    def _missed(self) -> Missed:
        return Missed() if self._tally is None else self._tally.read()

    def _look(self, observer: Observer, show: Show, recorder: Recorder) -> None:
        self.progress = replace(observer.look(), restarts=self._restarts.count)
        show(self.progress)
        recorder.record(self.progress)

    def _report(self, observer: Observer, seconds: float) -> Report:
        log, name, record = self._log, self._plan.name, self._place.record()
        accounting = None if record is None else JobAccounting(log, name, record, self._place.accounting)
        known, kept, models = ([], [], []) if accounting is None else (accounting.totals(), accounting.state(), accounting.models())
        return Report(
            name, observer.epoch, observer.watermark, seconds, known, observer.bounds, hot_keys(log, name), kept,
            ending(log, self._place), models, self._restarts.count,
        )  # fmt: skip


def _check(until: str | None, rows_per_epoch: int | None) -> None:
    if until not in UNTIL:
        raise PlanError(f"until={until!r} is not known", hint='"caught-up", "flushed", "end", or None to run until stopped', where=caller())
    if rows_per_epoch is not None and not counts(rows_per_epoch):
        raise PlanError(
            f"rows_per_epoch={rows_per_epoch!r} reads nothing", hint="give a whole number above zero, or leave it out", where=caller()
        )
