"""What a job writes to: views, sinks, late records, dead letters and the accounting."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.connectors.log.output import LogOutput
from headrace.connectors.output import Output
from headrace.log import Log
from headrace.log.target import LogTopic
from headrace.operators.accounting import COLUMNS
from headrace.operators.hot import COLUMNS as HOT
from headrace.operators.sides import DEAD_LETTER, late_columns
from headrace.plan.plan import Plan, Sink, View
from headrace.plan.topics import accounting_topic, dead_topic, hot_topic, late_topic


def create_outputs(log: Log, plan: Plan, partitions: int) -> None:
    """Make every topic that a job of the plan writes to, where it is not there yet, and see to the targets of its sinks elsewhere."""
    for source in plan.sources:
        log.create_topic(late_topic(source.name), schema=pa.schema([*source.columns, *late_columns(source.columns)]), exist_ok=True)
        log.create_topic(dead_topic(source.name), schema=DEAD_LETTER, exist_ok=True)
    log.create_topic(accounting_topic(plan.name), schema=COLUMNS, exist_ok=True)
    log.create_topic(hot_topic(plan.name), schema=HOT, exist_ok=True)
    for output in plan.outputs:
        if isinstance(output, Sink) and not isinstance(output.target, LogTopic):
            log.create_topic(letters_topic(output.name), schema=DEAD_LETTER, exist_ok=True)
            _sink(output, log).prepare(partitions)
            continue
        kept = {"cleanup.policy": "compact"} if isinstance(output, View) else {}
        log.create_topic(topic_of(output), partitions=partitions, schema=output.node.columns, config=kept, exist_ok=True)


def outputs_of(log: Log, plan: Plan) -> dict[str, Output]:
    """Everything that tasks of the plan's job write to, by the name under which records are sent there."""
    found: dict[str, Output] = {output.name: _sink(output, log) for output in plan.outputs}
    sides = [topic(source.name) for source in plan.sources for topic in (late_topic, dead_topic)]
    found |= {topic: LogOutput(log.path, topic) for topic in (*sides, accounting_topic(plan.name), hot_topic(plan.name))}
    return found | {dead_topic(sink.name): LogOutput(log.path, letters_topic(sink.name)) for sink in plan.outputs if isinstance(sink, Sink)}


def letters_topic(sink: str) -> str:
    """The topic for what the target of a sink refuses; the number of a name that is there twice is no part of a topic's name.

    >>> letters_topic("clicks.sink#2")
    'clicks.sink-2.dead'
    """
    return dead_topic(sink.replace("#", "-"))


def _sink(output: View | Sink, log: Log) -> Output:
    if isinstance(output, View) or isinstance(output.target, LogTopic):
        return LogOutput(log.path, topic_of(output), output.folds_by)
    target: Any = output.target
    found: Output = target.output(output.node.columns, output.folds_by)
    return found


def topic_of(output: View | Sink) -> str:
    """The topic of a view, or of a sink to the log."""
    return output.target.topic if isinstance(output, Sink) and isinstance(output.target, LogTopic) else output.name
