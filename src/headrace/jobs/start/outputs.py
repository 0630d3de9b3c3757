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
from headrace.plan.checks.source_columns import refuse_other_columns
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan, Sink
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
    for view in plan.views:
        yield OwnTopic(view.name, "view", view.node.columns, partitions, {"cleanup.policy": "compact"})
    for sink in plan.sinks:
        if sink.topic is None:
            yield OwnTopic(letters_topic(sink.name), "side", DEAD_LETTER)
        else:
            yield OwnTopic(sink.topic, "sink", sink.node.columns, partitions)


def create_outputs(log: Log, plan: Plan, partitions: int) -> list[str]:
    """Prepare the targets of a plan's sinks elsewhere, then create every topic that its job writes to; returns the new ones."""
    for sink in plan.sinks:
        if sink.topic is None:
            _elsewhere(sink).prepare(partitions)
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
    found: dict[str, Output] = {
        output.name: LogOutput(log.path, output.topic, output.folds_by) for output in plan.outputs if output.topic is not None
    }
    found |= {sink.name: _elsewhere(sink) for sink in plan.sinks if sink.topic is None}
    sides = [topic(source.name) for source in plan.sources for topic in (late_topic, dead_topic)]
    found |= {topic: LogOutput(log.path, topic) for topic in (*sides, accounting_topic(plan.name), hot_topic(plan.name))}
    return found | {dead_topic(sink.name): LogOutput(log.path, letters_topic(sink.name)) for sink in plan.sinks}


def letters_topic(sink: str) -> str:
    """The topic for what the target of a sink refuses; the number of a repeated name is not part of the topic's name.

    >>> letters_topic("clicks.sink#2")
    'clicks.sink-2.dead'
    """
    return dead_topic(sink.replace("#", "-"))


def _elsewhere(sink: Sink) -> Output:
    target: Any = sink.target
    found: Output = target.output(sink.node.columns, sink.folds_by)
    return found
