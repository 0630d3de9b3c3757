"""The columns of a stream against those of its topic: a stream may have fewer, and each must be one of the topic's."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import declared, declared_type, unit_of
from headrace.core.errors import PlanError
from headrace.plan.nodes import Source


def refuse_other_columns(source: Source, topic: pa.Schema) -> None:
    """Raise for the first column of a stream that its topic does not have as the stream declares it."""
    for column in source.columns:
        problem = _problem(column, topic)
        if problem is not None:
            raise PlanError(
                f"column {column.name!r} of stream {source.name!r} {problem}",
                why="the stream reads what the topic stores",
                hint=f"the topic has {declared(topic)}: declare those that the app needs, add the column to the topic with "
                f"app.log.alter_topic({source.name!r}, schema=...), or use another name",
                where=source.where,
            )


def _problem(column: pa.Field, topic: pa.Schema) -> str | None:
    if column.name not in topic.names:
        return "is not in its topic"
    stored = topic.field(column.name)
    if not stored.type.equals(column.type):
        return f"is declared as {declared_type(column)}, and is {declared_type(stored)} in its topic"
    if stored.nullable and not column.nullable:
        return "is declared NOT NULL, and may be null in its topic"
    if unit_of(column) is not None and unit_of(column) != unit_of(stored):
        return f"is declared as {declared_type(column)}, and its topic takes {declared_type(stored)}"
    return None
