"""The topics that a job writes: views, sinks in the log, late records, dead letters and the accounting."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.log import Log
from headrace.log.target import LogTopic
from headrace.operators.accounting import COLUMNS
from headrace.operators.sides import DEAD_LETTER, dead_topic, late_columns, late_topic
from headrace.plan.plan import Output, Plan, Sink, View


def create_outputs(log: Log, plan: Plan, partitions: int) -> None:
    """Make every topic that a job of the plan writes to, where it is not there yet."""
    for source in plan.sources:
        log.create_topic(late_topic(source.name), schema=pa.schema([*source.columns, *late_columns(source.columns)]), exist_ok=True)
        log.create_topic(dead_topic(source.name), schema=DEAD_LETTER, exist_ok=True)
    log.create_topic(accounting_topic(plan.name), schema=COLUMNS, exist_ok=True)
    for output in plan.outputs:
        kept = {"cleanup.policy": "compact"} if isinstance(output, View) else {}
        log.create_topic(topic_of(output), partitions=partitions, schema=output.node.columns, config=kept, exist_ok=True)


def topic_of(output: Output) -> str:
    """The topic that takes a view's changelog, or a sink's records."""
    if isinstance(output, View):
        return output.name
    if isinstance(output.target, LogTopic):
        return output.target.topic
    raise PlanError(f"sink {output.name!r}: {output.target!r} is no target", hint='write to a topic of the log: hr.log("topic")')


def keys_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The key by which each output's records replace each other; a sink of facts has none."""
    return {output.name: output.key if isinstance(output, View) else _sink_key(output) for output in plan.outputs}


def accounting_topic(app: str) -> str:
    return f"{app}.accounting"


def _sink_key(sink: Sink) -> tuple[str, ...]:
    if not sink.node.changes:
        return ()
    if not sink.node.keys:
        raise PlanError(
            f"sink {sink.name!r}: results of {sink.node.name!r} replace earlier ones, and nothing tells which",
            hint="keep the columns of its key",
            where=sink.node.where,
        )
    return sink.node.keys
