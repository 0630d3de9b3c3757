"""The facts that rules judge, read from disk at one moment: the job's directory, its accounting, and the ends of its topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headrace.core.errors import PlanError
from headrace.engine.hot_keys import HotKey
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.facts.described_time import rebuilt
from headrace.jobs.facts.description import DescribedOutput, DescribedStep, JobDescription, read_description
from headrace.jobs.facts.last_run import LastRun
from headrace.jobs.facts.listing import Listed, listed
from headrace.jobs.facts.report import hot_keys
from headrace.jobs.facts.write_times import WriteTime, last_writes
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.watermarks import Watermark


@dataclass(frozen=True)
class StreamEnd:
    """A topic that a job reads: the number of records it was ever sent, and when the last was stored (microseconds since 1970)."""

    records: int
    appended_at: int | None


@dataclass(frozen=True)
class JobFacts:
    """A job at one moment. `view` and `key` are what the user asks about; None for all."""

    listed: Listed
    description: JobDescription | None
    log: Log | None
    now: int
    run: LastRun | None = None
    plan: EpochPlan | None = None
    """The last committed epoch."""
    totals: list[dict[str, Any]] = field(default_factory=list)
    hot: list[HotKey] = field(default_factory=list)
    writes: list[WriteTime] = field(default_factory=list)
    view: str | None = None
    key: str | None = None

    @cached_property
    def outputs(self) -> tuple[DescribedOutput, ...]:
        """The requested views and sinks."""
        known = self.description.outputs if self.description else ()
        return tuple(output for output in known if self.view in (None, output.name))

    @cached_property
    def steps(self) -> tuple[DescribedStep, ...]:
        """The streams and steps that those depend on, in the order in which records meet them."""
        known = self.description.steps if self.description else ()
        wanted = {output.reads for output in self.outputs}
        for step in reversed(known):
            wanted |= set(step.reads) if step.name in wanted else set()
        return tuple(step for step in known if step.name in wanted)

    @cached_property
    def streams(self) -> tuple[DescribedStep, ...]:
        return tuple(step for step in self.steps if step.kind == "stream")

    @cached_property
    def rules(self) -> dict[str, Watermark]:
        """The watermarks of the streams that have one; all streams of the job, since they determine one watermark."""
        known = self.description.steps if self.description else ()
        return {step.name: rebuilt(step.watermark) for step in known if step.watermark is not None}

    @cached_property
    def progress(self) -> Mapping[str, StreamTime]:
        """The event time of each stream at the last committed epoch."""
        return {} if self.plan is None else self.plan.progress

    @property
    def watermark(self) -> int | None:
        mark = BEGINNING if self.plan is None else self.plan.watermark
        return mark if BEGINNING < mark < END else None

    def counts(self) -> list[dict[str, Any]]:
        """The accounting of the requested steps and outputs."""
        names = {step.name for step in self.steps} | {output.name for output in self.outputs}
        return [row for row in self.totals if row["step"] in names]

    def end_of(self, topic: str) -> StreamEnd | None:
        """The end of a topic of the log; None if it does not exist."""
        if self.log is None:
            return None
        try:
            declared = self.log.topic(topic)
        except UnknownTopic:
            return None
        records, moments = 0, []
        for index in range(declared.partitions):
            state = self.log.partition(declared, index).state()
            records += state.visible
            if state.visible > state.start:
                last = self.log.read(topic, columns=["_appended_at"], start=state.visible - 1, partition=index)
                moments += [moment for moment in last.column(0).cast("int64").to_pylist() if moment is not None]
        return StreamEnd(records, max(moments, default=None))


def facts_of(place: JobDirectory, log: Log | None, now: int, *, view: str | None = None, key: str | None = None) -> JobFacts:
    """Read the facts of a job; a view that it does not have is refused."""
    description, record = read_description(place.path), place.record()
    if view is not None and description is not None and view not in {output.name for output in description.outputs}:
        names = ", ".join(output.name for output in description.outputs) or "none"
        raise PlanError(f"job {place.name!r} has no view or sink {view!r}", hint=f"it has: {names}")
    return JobFacts(
        listed(place, log), description, log, now, LastRun.of(place), place.committed_plan(),
        JobAccounting(log, place.name, record, place.accounting).totals() if log is not None and record is not None else [],
        hot_keys(log, place.name) if log is not None else [],
        last_writes(log, place, record) if log is not None and record is not None else [], view, key,
    )  # fmt: skip
