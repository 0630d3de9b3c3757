"""A scenario performed by a real job: the embedded log, Spark, and a wall clock that the scenario moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

import pyarrow as pa

from headrace.app import App
from headrace.checkpoint.epoch_files import stored_plan
from headrace.core.clock import to_datetime, to_microseconds
from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.start.assembly import Bounds, job_of
from headrace.jobs.start.outputs import create_outputs
from headrace.log import Log
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.plan.explain import identity
from headrace.plan.topics import dead_topic, late_topic
from headrace.spark import query as spark_query
from headrace.spark.session import job_session, on_cluster
from headrace.testing.clock import FileClock
from headrace.testing.scenarios.scenario import Row, Scenario, Send, Wait


class JobEngine:
    """Runs the app of a scenario as a job of its own under `home`, in the present Spark session.

    After each action it waits until the job has read all records. After the actions numbered in `stops` (from 1) the job is stopped, and
    starts again from its checkpoint.
    """

    def __init__(self, scenario: Scenario, settings: Settings, *, tasks: int = 1, stops: Sequence[int] = ()) -> None:
        settings.home.mkdir(parents=True, exist_ok=True)
        self._clock = FileClock(settings.home / "clock")
        self._clock.set(to_microseconds(scenario.starts_at))
        self._app = App(scenario.name, settings=settings)
        self._app.log = Log(settings.home / "log", clock=self._clock)
        scenario.declare(self._app)
        self._plan = self._app.plan()
        self._columns = {source.name: source.columns for source in self._plan.sources}
        self._place = JobDirectory(settings.home, scenario.name)
        self._tasks, self._stops = tasks, stops
        self._actions = 0
        self._resources = ExitStack()

    def __enter__(self) -> JobEngine:
        self._resources.enter_context(self._place.held())
        settings = self._app.settings
        self._spark = self._resources.enter_context(job_session(settings, name=self._plan.name, output=self._place.spark_log))
        self._record = self._place.begin(identity(self._plan), self._tasks, cluster=on_cluster(self._spark))
        self._place.fix(self._record)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._record.tasks))
        self._spark.conf.set("spark.sql.streaming.pollingDelay", "50ms")
        create_outputs(self._app.log, self._plan, self._record.tasks)
        self._query = self._start(None)
        self._resources.callback(self._stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._resources.close()

    def send(self, stream: str, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._app.log.producer() as producer:
            producer.send_table(stream, pa.Table.from_pylist(list(rows), schema=self._columns[stream]))
        self._settle()

    def wait(self, time: timedelta) -> None:
        self._clock.advance(time)
        self._settle()

    def flush(self) -> None:
        self._finish("flushed")
        self._query = self._start(None)

    def end(self) -> None:
        self._finish("end")

    def rows(self, view: str) -> list[Row]:
        return list(self._app.read(view).to_pylist())

    def late(self, stream: str) -> list[Row]:
        return list(self._app.log.read(late_topic(stream)).to_pylist())

    def dead_letters(self, stream: str) -> list[Row]:
        return list(self._app.log.read(dead_topic(stream)).to_pylist())

    def accounting(self) -> list[dict[str, Any]]:
        return JobAccounting(self._app.log, self._plan.name, self._record).totals()

    @property
    def watermark(self) -> datetime | None:
        """As of the last epoch that Spark stored; it does so before it runs one."""
        epochs = [int(file.name) for file in (self._place.checkpoint / "offsets").iterdir() if file.name.isdigit()]
        mark = stored_plan(self._place.checkpoint / "offsets" / str(max(epochs))).watermark
        return to_datetime(mark) if BEGINNING < mark < END else None

    def _finish(self, until: str) -> None:
        self._stop()
        self._query = self._start(until)
        self._query.awaitTermination()

    def _stop(self) -> None:
        self._query.stop()

    def _start(self, until: str | None) -> spark_query.Query:
        # Each start is a run of its own, which reads the state that the previous one left.
        bounds = Bounds(quick=self._app.settings.quick_rows)
        job = replace(job_of(self._plan, self._record, self._app.log, until=until, bounds=bounds), generation=self._place.next_run())
        return spark_query.start(self._spark, job, self._place.checkpoint)

    def _settle(self) -> None:
        # A query of the sources that began before the records arrived may end the first wait; the second begins after that.
        for _ in range(2):
            self._query.processAllAvailable()
        if (failure := self._query.exception()) is not None:
            raise JobError(f"the job of scenario {self._plan.name!r} stopped: {failure}")
        self._actions += 1
        if self._actions in self._stops:
            self._stop()
            self._query = self._start(None)


def midpoint(scenario: Scenario) -> tuple[int, ...]:
    """The action after which a job is stopped and resumed: half of them are done, and at least one."""
    return (max(1, sum(isinstance(action, Send | Wait) for action in scenario.transcript) // 2),)
