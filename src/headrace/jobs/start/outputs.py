"""The outputs of a job: views, sinks, late records, dead letters and the accounting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from headrace.connectors.log.output import LogOutput
from headrace.connectors.output import Output
from headrace.core.columns.schema import SchemaLike, schema
from headrace.engine.accounting import COLUMNS
from headrace.engine.hot_keys import COLUMNS as HOT
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.target import LogTopic
from headrace.plan.checks.source_columns import refuse_other_columns
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan, Sink, View
from headrace.plan.side_streams import DEAD_LETTER, late_columns
from headrace.plan.topics import accounting_topic, dead_topic, hot_topic, late_topic

# Old entries are removed a segment at a time.
_SMALL = {"segment.bytes": 4 << 20}
_HOT_BYTES = 16 << 20


@dataclass(frozen=True)
class OwnTopic:
    """A topic that a job writes to: its purpose, its columns, its partitions, and its settings."""

    name: str
    kind: str
    """`view`, `sink`, or `side` for a side topic."""
    columns: SchemaLike
    partitions: int = 1
    config: Mapping[str, str | int] = field(default_factory=dict)
    grows: bool = False
    """Whether columns that it lacks are added: apps that name other columns of a stream share the topic of its late records, and a later
    version counts more in the accounting."""


def topics_of(plan: Plan, partitions: int = 1) -> Iterator[OwnTopic]:
    """Every topic that a job of the plan writes to."""
    for source in plan.sources:
        yield OwnTopic(late_topic(source.name), "side", _late_columns(source), grows=True)
        yield OwnTopic(dead_topic(source.name), "side", DEAD_LETTER)
    yield OwnTopic(accounting_topic(plan.name), "side", COLUMNS, config=_SMALL, grows=True)
    yield OwnTopic(hot_topic(plan.name), "side", HOT, config={**_SMALL, "retention.bytes": _HOT_BYTES})
    for output in plan.outputs:
        if isinstance(output, View):
            yield OwnTopic(output.name, "view", output.node.columns, partitions, {"cleanup.policy": "compact"})
        elif isinstance(output.target, LogTopic):
            yield OwnTopic(output.target.topic, "sink", output.node.columns, partitions)
        else:
            yield OwnTopic(letters_topic(output.name), "side", DEAD_LETTER)


def create_outputs(log: Log, plan: Plan, partitions: int) -> list[str]:
    """Prepare the targets of a plan's sinks elsewhere, then create every topic that its job writes to; returns the new ones."""
    for output in plan.outputs:
        if isinstance(output, Sink) and not isinstance(output.target, LogTopic):
            _sink(output, log).prepare(partitions)
    made = [topic.name for topic in topics_of(plan) if not has_topic(log, topic.name)]
    for topic in topics_of(plan, partitions):
        if topic.grows:
            _grow(log, topic)
    for source in plan.sources:
        name = late_topic(source.name)
        refuse_other_columns(replace(source, name=name, columns=_late_columns(source)), log.topic(name).columns)
    for topic in topics_of(plan, partitions):
        if not topic.grows:
            log.create_topic(topic.name, partitions=topic.partitions, schema=topic.columns, config=topic.config, exist_ok=True)
    return made


def has_topic(log: Log, name: str) -> bool:
    try:
        log.topic(name)
    except UnknownTopic:
        return False
    return True


def _grow(log: Log, topic: OwnTopic) -> None:
    """Create a topic; to one that is there, add the columns that it lacks."""
    wanted = schema(topic.columns)
    try:
        present = log.topic(topic.name).columns
    except UnknownTopic:
        log.create_topic(topic.name, schema=wanted, config=topic.config, exist_ok=True)
        return
    missing = [column for column in wanted if column.name not in present.names]
    if missing:
        log.alter_topic(topic.name, schema=pa.schema([*present, *missing]))


def _late_columns(source: Source) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type) for column in (*source.columns, *late_columns(source.columns))])


def outputs_of(log: Log, plan: Plan) -> dict[str, Output]:
    """Everything that tasks of the plan's job write to, by the name under which records are sent there."""
    found: dict[str, Output] = {output.name: _sink(output, log) for output in plan.outputs}
    sides = [topic(source.name) for source in plan.sources for topic in (late_topic, dead_topic)]
    found |= {topic: LogOutput(log.path, topic) for topic in (*sides, accounting_topic(plan.name), hot_topic(plan.name))}
    return found | {dead_topic(sink.name): LogOutput(log.path, letters_topic(sink.name)) for sink in plan.outputs if isinstance(sink, Sink)}


def letters_topic(sink: str) -> str:
    """The topic for what the target of a sink refuses; the number of a repeated name is not part of the topic's name.

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
