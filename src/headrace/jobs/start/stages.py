"""The stages of a start before Spark, in their order: a stage that refuses leaves the job as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.connectors.input import Input
from headrace.core.settings import Settings
from headrace.jobs.directory import JobDirectory
from headrace.jobs.ending import warn_of_the_end
from headrace.jobs.evolution.takeover import evolve
from headrace.jobs.facts.last_run import Recorder
from headrace.jobs.start.acceptance import accept, reach
from headrace.jobs.start.assembly import inputs_of
from headrace.jobs.start.outputs import outputs_of
from headrace.log import Log
from headrace.plan.evolution.comparison import Decisions
from headrace.plan.plan import Plan


@dataclass
class StartState:
    """A start at work: its job, and the results of the stages so far."""

    plan: Plan
    settings: Settings
    log: Log
    place: JobDirectory
    recorder: Recorder
    until: str | None = None
    accept_changes: bool = False
    decisions: Decisions | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)


def record_inputs(start: StartState) -> None:
    """Record what the run reads, so that readers of the record know it also if the run is refused."""
    topics = tuple(source.name for source in start.plan.sources if source.connector is None)
    start.recorder.reads(topics, len(topics) < len(start.plan.sources))


def accept_app(start: StartState) -> None:
    """Refuse settings, changed apps and topics with which the job cannot run."""
    start.decisions = accept(start.plan, start.settings, start.log, start.place, changed=start.accept_changes)


def open_inputs(start: StartState) -> None:
    start.inputs = inputs_of(start.plan, start.log)


def reach_systems(start: StartState) -> None:
    """Refuse a run whose systems do not answer."""
    reach(start.plan, start.inputs, outputs_of(start.log, start.plan))


def evolve_state(start: StartState) -> None:
    """Take over the state of an accepted change: the first stage that changes the job."""
    if start.decisions is not None:
        evolve(start.plan, start.place, start.decisions)


def warn_of_an_end(start: StartState) -> None:
    warn_of_the_end(start.log, start.place, start.until)


STAGES: tuple[Callable[[StartState], None], ...] = (
    record_inputs,
    accept_app,
    open_inputs,
    reach_systems,
    evolve_state,
    warn_of_an_end,
)
