"""A task of Spark that runs one small epoch after the other, as the loop tells it over a socket.

Starting a task for each epoch would take longer than the work of a small one. The task ends now and then, so that its core is free for
other jobs of the same Spark; its process, with the state in memory, stays and gets the next one.
"""

from __future__ import annotations

import selectors
import socket
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path

from pyspark import SparkContext

from headrace.core.errors import JobError
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.spark.job import Job
from headrace.spark.loop.whole_epoch import WholeEpoch
from headrace.spark.workers.apart import workers_apart
from headrace.spark.workers.shard_cache import cached_shards
from headrace.spark.workers.worker import retire, settle

# In seconds: how long one task serves, and how often a start that takes long is looked after.
_STRETCH, _LOOK = 10.0, 0.05


class _End(Enum):
    """Why a task ends: others may have its core, or several tasks are next, which have the state in their own memory."""

    STRETCH = 1
    LEAVE_MEMORY = 2


class ResidentTask:
    """The driver's end: epochs of a job in one task. One thread at a time."""

    def __init__(self, context: SparkContext, job: Job, checkpoint: Path, group: str) -> None:
        self._context, self._group = context, group
        # Only this user can enter the directory.
        self._directory = tempfile.TemporaryDirectory(prefix="headrace-")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address = str(Path(self._directory.name) / "epochs")
        self._listener.bind(address)
        self._listener.listen(1)
        # The calls of one thread of Spark's wait for the end of its job.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-resident")
        self._task: Future[None] | None = None
        self._connection: Connection | None = None
        self._ends_at = 0.0
        self._in_memory = False
        with workers_apart(context, "whole epochs"):
            # Spark gets the function with the job now, once.
            self._rows = context.parallelize([None], 1).mapPartitions(EpochServer(job, checkpoint, address))._jrdd  # noqa: SLF001

    def read(self, plan: EpochPlan, before: EpochPlan) -> None:
        """Have the task read the epoch after another one; it writes nothing yet."""
        self.rest()
        connection, self._in_memory = self._opened(), True
        with self._alive(plan):
            connection.send((plan, before))

    def run(self, plan: EpochPlan) -> None:
        """Run the epoch that was read; all of it is written when this returns."""
        assert self._connection is not None, "a task that has read the epoch"
        with self._alive(plan):
            self._connection.send(plan.epoch)
            done = self._connection.recv()
        if done != plan.epoch:
            raise JobError(f"epoch {plan.epoch} in one task was reported as {done}", why="it is not certain that all of it is written")

    @contextmanager
    def _alive(self, plan: EpochPlan) -> Iterator[None]:
        """What stopped the task is raised, if the connection ends."""
        try:
            yield
        except (EOFError, ConnectionError):
            self._end()
            raise JobError(f"the task of epoch {plan.epoch} ended before the epoch did") from None

    def rest(self) -> None:
        """End a task that has served for long."""
        if self._connection is not None and time.monotonic() > self._ends_at:
            self._end(_End.STRETCH)

    def leave_memory(self) -> None:
        """Drop the state in the memory of the task's process, before several tasks have it in theirs."""
        if self._in_memory:
            self._opened()
            self._end(_End.LEAVE_MEMORY)
            self._in_memory = False

    def close(self) -> None:
        """End the task, and all that belongs to it; an error of the task is raised."""
        try:
            self._end(_End.STRETCH)
        finally:
            self._listener.close()
            self._thread.shutdown()
            self._directory.cleanup()

    def _opened(self) -> Connection:
        if self._connection is None:
            self._task = self._thread.submit(self._serve)
            self._connection = self._accepted(self._task)
            self._ends_at = time.monotonic() + _STRETCH
        return self._connection

    def _serve(self) -> None:
        self._context.setJobGroup(self._group, "epochs in one task")
        self._rows.count()

    def _accepted(self, task: Future[None]) -> Connection:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not selector.select(_LOOK):
                if task.done():
                    task.result()
                    raise JobError("a task of Spark ended before it began")
        return Connection(self._listener.accept()[0].detach())

    def _end(self, why: _End | None = None) -> None:
        """End the task, if there is one, and wait for that; what stopped it is raised."""
        connection, self._connection, task, self._task = self._connection, None, self._task, None
        if connection is not None:
            with connection, suppress(OSError):
                # One that has failed does not listen.
                if why is not None:
                    connection.send(why)
        if task is not None:
            task.result()


class EpochServer:
    """The task's end: it runs each epoch that it is told."""

    def __init__(self, job: Job, checkpoint: Path, address: str) -> None:
        self._job, self._checkpoint, self._address = job, checkpoint, address

    def __call__(self, rows: Iterable[None]) -> Iterator[bool]:
        # Spark ends a process that has not read all of its input.
        deque(rows, maxlen=0)
        settle()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as driver:
            driver.connect(self._address)
            with Connection(driver.detach()) as connection:
                self._serve(connection)
        yield True

    def _serve(self, connection: Connection) -> None:
        # A driver that is gone ends the task, too.
        with suppress(EOFError, ConnectionError):
            while not isinstance(asked := connection.recv(), _End):
                plan, before = asked
                epoch = WholeEpoch(self._job, self._checkpoint, plan.time(before))
                epoch.read(plan.ranges(before), plan.limits)
                # Its plan is stored when the driver says so.
                if isinstance(asked := connection.recv(), _End):
                    break
                epoch.run()
                connection.send(plan.epoch)
            if asked is _End.LEAVE_MEMORY:
                cached_shards.drop(self._job.id)
                retire()
