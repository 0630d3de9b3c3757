"""The step that runs the user's own logic by key, built from functions and schemas."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.core.columns.names import Names
from headrace.core.durations import Duration
from headrace.plan.building.functions import refuse_arity
from headrace.plan.building.keyed import REQUIRED, time_to_live
from headrace.plan.building.step_place import StepPlace
from headrace.plan.process import IN_TIME, Logic, Process


@dataclass(frozen=True)
class ProcessArguments:
    """The arguments of `process`: the user's functions, the key, and the columns of state and results."""

    logic: Logic
    by: Names
    state: pa.Schema
    returns: pa.Schema | None = None
    ttl: Duration | None = REQUIRED
    order: str = IN_TIME


def process(after: StepPlace, asked: ProcessArguments, name: str | None = None) -> Process:
    logic, of = asked.logic, f"of {after.node.name!r}"
    keeps_nothing = not len(asked.state) and logic.on_timer is None and not logic.vectorized
    ttl = None if asked.ttl == REQUIRED and keeps_nothing else asked.ttl
    length = time_to_live(after, ttl, f"process(by={asked.by!r})")
    names = after.columns_of(asked.by, "process by")
    refuse_arity(logic.on_event, ("events", "states") if logic.vectorized else ("event", "state", "timers"), f"process(...) {of}", after.at)
    if logic.on_timer is not None:
        refuse_arity(logic.on_timer, ("timer", "state", "timers"), f"on_timer= {of}", after.at)
    columns = after.columns if asked.returns is None else asked.returns
    return Process(after.called("process", name), columns, after.at, after.node, names, asked.state, logic, length, asked.order)
