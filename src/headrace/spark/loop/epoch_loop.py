"""The loop of a job's epochs on one machine: plan an epoch, store its plan, run its tasks, commit it.

While an epoch is committed the next one is planned, and read if it is small. Its plan is stored once the commit is; before that nothing of
the next epoch is written.

It does what a streaming query of Spark does, and keeps its journal in the same form: a later run may be either. Spark's own loop takes some
70 ms for each epoch, in which two processes plan it, and its commit is two more files; this one takes a few.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from textwrap import indent
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headrace.checkpoint.epoch_files import stored_plan
from headrace.checkpoint.journal import COMMITS, OFFSETS, Journal, batches, entry
from headrace.core import failpoints
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.quick_epochs import LAST_OF_SEVERAL, ONE
from headrace.spark.epoch_planning import EpochPlanning
from headrace.spark.job import Job
from headrace.spark.loop.arrivals import Arrivals
from headrace.spark.loop.resident_task import ResidentTask
from headrace.spark.loop.several_tasks import SeveralTasks
from headrace.spark.session import alive

# In seconds: between two reports to the sources, and for an epoch at work when the loop is to stop.
_TELL, _PATIENCE = 1.0, 0.5
_REPORTS = 100


class EpochLoop:
    """A job at work, with the methods of Spark's `StreamingQuery` by which jobs watch one."""

    def __init__(self, spark: SparkSession, job: Job, checkpoint: Path, keep_up: Callable[[int], None]) -> None:
        self._spark, self._job, self._checkpoint, self._keep_up = spark, job, checkpoint, keep_up
        self._group = f"headrace {job.name} {uuid4().hex}"
        self._planning, self._journal = EpochPlanning(job, checkpoint), Journal(checkpoint)
        self._one = ResidentTask(spark.sparkContext, job, checkpoint, self._group)
        self._several = SeveralTasks(spark, job, checkpoint)
        self._arrivals = Arrivals(job.inputs.values())
        self._stopping, self._changed = threading.Event(), threading.Condition()
        self._round = self._idle_round = 0
        self._at_work = self._ended = False
        self._commits = ThreadPoolExecutor(1, thread_name_prefix="headrace-commits")
        self._commit: Future[None] | None = None
        self._told_at = 0.0
        self._untold: EpochPlan | None = None
        self._failure: Exception | None = None
        self._reports: deque[dict[str, Any]] = deque(maxlen=_REPORTS)
        self._thread = InheritableThread(target=self._work, name=f"headrace-{job.name}", daemon=True)

    def start(self) -> EpochLoop:
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:
        return self._thread.is_alive() and not self._ended

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self._at_work}

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        """The reports on the last epochs, in the form of Spark's."""
        return list(self._reports)

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self._reports[-1] if self._reports else None

    def exception(self) -> Exception | None:
        """What stopped the loop; None if nothing did."""
        return self._failure

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end of the loop, at most `timeout` seconds, and return whether it has ended. Its error is raised."""
        self._thread.join(timeout)
        if self.isActive:
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def processAllAvailable(self) -> None:
        """Wait until everything that is there now is committed. What stopped the loop is raised."""
        with self._changed:
            # A look that is under way may have begun before the last records arrived.
            asked = self._round + 1
            self._changed.wait_for(lambda: self._idle_round >= asked or self._ended)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the loop. An epoch at work is cut off if it takes long; the next run repeats it."""
        self._stopping.set()
        self._thread.join(_PATIENCE)
        if self.isActive and alive():
            self._spark.sparkContext.cancelJobGroup(self._group)
        self._thread.join()

    def _work(self) -> None:
        try:
            self._spark.sparkContext.setJobGroup(self._group, "epochs in several tasks")
            with self._ending():
                self._run()
                self._committed()
                self._tell()
        except Exception as error:  # noqa: BLE001 - who waits for the end gets it
            # One that was cut off did not fail.
            self._failure = None if self._stopping.is_set() else _as_of_a_query(error)
        finally:
            with self._changed:
                self._at_work, self._ended = False, True
                self._changed.notify_all()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End what works beside the loop when the loop ends. Of several failures the first one is raised; the others are told with it."""
        try:
            yield
        except Exception as error:
            for step in (self._committed, self._one.close):
                try:
                    step()
                except Exception as other:  # noqa: BLE001 - it is told with the first one
                    error.add_note(indent(f"after that: {type(other).__name__}: {other}", "  "))
            raise
        else:
            self._one.close()
        finally:
            self._commits.shutdown()

    def _run(self) -> None:
        self._journal.open()
        if self._job.until is not None:
            self._planning.stop_at_present_records()
        plan = self._continued()
        while not self._stopping.is_set():
            began, self._round = time.perf_counter(), self._round + 1
            self._arrivals.listen()
            before, plan = plan, self._planning.next(plan, self._job.rows_per_epoch)
            if plan is not before:
                self._epoch(before, plan, began)
                continue
            self._committed()
            with self._changed:
                self._idle_round = self._round
                self._changed.notify_all()
            if self._job.until is not None:
                return
            self._one.rest()
            self._arrivals.wait()

    def _continued(self) -> EpochPlan:
        """The last epoch; one that was planned and not committed is done again first."""
        last = max(batches(self._checkpoint, OFFSETS), default=None)
        if last is None:
            return self._planning.planner.first()
        plan = self._stored(last)
        if not entry(self._checkpoint, COMMITS, last).exists():
            before = self._stored(last - 1) if last else self._planning.planner.first()
            # It was planned by an earlier run.
            self._planning.planner.check(plan)
            self._journal.sync(OFFSETS, plan.epoch)
            self._read(before, plan)
            self._compute(before, plan)
            self._journal.commit(plan.epoch)
            self._at_work, self._untold = False, plan
        return plan

    def _stored(self, batch: int) -> EpochPlan:
        return self._planning.known(stored_plan(entry(self._checkpoint, OFFSETS, batch)))

    def _epoch(self, before: EpochPlan, plan: EpochPlan, began: float) -> None:
        """Store the plan of an epoch, run it, and begin to commit it."""
        planned, text = time.perf_counter(), json.dumps(plan.to_json())
        self._read(before, plan)
        self._committed()
        self._journal.plan(plan.epoch, text)
        stored = time.perf_counter()
        self._compute(before, plan)
        self._commit = self._commits.submit(self._finish, plan, text, (began, planned, stored, time.perf_counter()))

    def _read(self, before: EpochPlan, plan: EpochPlan) -> None:
        """Begin with what may be done before the plan is stored."""
        if plan.tasks == ONE:
            self._one.read(plan, before)

    def _compute(self, before: EpochPlan, plan: EpochPlan) -> None:
        """Run the tasks of an epoch."""
        self._at_work = True
        if plan.tasks == ONE:
            self._one.run(plan)
        else:
            self._one.leave_memory()
            self._several.run(plan, before, keeps=plan.tasks != LAST_OF_SEVERAL)

    def _finish(self, plan: EpochPlan, text: str, moments: tuple[float, ...]) -> None:
        """Commit an epoch whose tasks are done, and report on it."""
        failpoints.reach("loop.commit.before")
        self._journal.commit(plan.epoch)
        failpoints.reach("loop.commit.after")
        self._keep_up(plan.epoch)
        start = self._reports[-1]["sources"][0]["endOffset"] if self._reports else None
        self._reports.append(_report(plan.epoch, start, text, (*moments, time.perf_counter())))
        self._untold = plan

    def _committed(self) -> None:
        """Wait until the last epoch is committed."""
        commit, self._commit = self._commit, None
        if commit is None:
            return
        commit.result()
        self._at_work = False
        if time.perf_counter() - self._told_at > _TELL:
            self._tell()

    def _tell(self) -> None:
        """Tell the sources how far the job has come: not after every epoch, since some of them wait for an answer."""
        plan, self._untold, self._told_at = self._untold, None, time.perf_counter()
        if plan is not None:
            self._planning.tell(plan)


def _report(epoch: int, start: str | None, end: str, moments: tuple[float, ...]) -> dict[str, Any]:
    """A report in the form of Spark's, with the phases that this loop has."""
    look, store, compute, commit = ((after - before) * 1_000 for before, after in pairwise(moments))
    spent = {"latestOffset": look, "walCommit": store, "addBatch": compute, "commitOffsets": commit, "triggerExecution": 0.0}
    spent["triggerExecution"] = sum(spent.values())
    return {"batchId": epoch - 1, "durationMs": spent, "sources": [{"startOffset": start, "endOffset": end}]}


def _as_of_a_query(error: Exception) -> Exception:
    """An error as a query of Spark raises it: its text has all that is known. The end of the JVM stays what it is."""
    if isinstance(error, Py4JJavaError):
        return StreamingQueryException(message="\n".join([str(error), *getattr(error, "__notes__", ())]))
    if isinstance(error, (Py4JError, ConnectionError)) and not alive():
        return error
    return StreamingQueryException(message="".join(traceback.format_exception(error)))
