"""The late records and the dead letters of a stream: their columns, and the streams that an app makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP, ddl
from headrace.core.errors import PlanError
from headrace.plan.nodes import Node, Source
from headrace.plan.topics import dead_topic, late_topic

LATE = (
    pa.field("step", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("watermark", TIMESTAMP),
    pa.field("window_start", TIMESTAMP),
    pa.field("window_end", TIMESTAMP),
)
DEAD_LETTER = pa.schema(
    [
        ("step", pa.string()),
        ("reason", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("record", pa.string()),
    ]
)


def late_columns(stream: pa.Schema) -> pa.Schema:
    """The columns of a late record in addition to those of its stream; a name that the stream has itself gets the prefix `late_`.

    >>> late_columns(pa.schema([("reason", pa.string())])).names
    ['step', 'late_reason', 'watermark', 'window_start', 'window_end']
    """
    return pa.schema([field.with_name(name) for field, name in zip(LATE, late_names(stream.names), strict=True)])


def late_names(taken: Sequence[str]) -> list[str]:
    """The names of these columns next to those of a stream."""
    return [f"late_{field.name}" if field.name in taken else field.name for field in LATE]


@dataclass(frozen=True)
class SideStream(Node):
    """The late records or the dead letters of a stream, in the epoch in which they are found.

    Their time is the watermark by which they were judged, so none of them is ever late.
    """

    source: Source

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    @property
    def side_of(self) -> Source | None:
        return self.source

    @property
    def does(self) -> str:
        return f"{'late records' if self.name == late_topic(self.source.name) else 'dead letters'} ({ddl(self.columns)})"


def late_of(node: Node, where: str | None) -> SideStream:
    """The late records of a stream."""
    source = _source(node, "late", where)
    if source.watermark is None or source.late == "drop":
        why = "it has no watermark" if source.watermark is None else 'it is declared with late="drop"'
        raise PlanError(f"late() of stream {source.name!r} has no records", why=why, hint="declare it with watermark=", where=where)
    return SideStream(late_topic(source.name), pa.schema([*source.columns, *late_columns(source.columns)]), where, source)


def dead_of(node: Node, where: str | None) -> SideStream:
    """The dead letters of a stream."""
    source = _source(node, "dead", where)
    return SideStream(dead_topic(source.name), DEAD_LETTER, where, source)


def _source(node: Node, kind: str, where: str | None) -> Source:
    if node.declared_stream is None:
        raise PlanError(
            f"{kind}() of {node.name!r}, which is not a stream that the app declares",
            why="late records and dead letters are kept as they came, by the stream that they came from",
            hint=f"call it on the stream that app.stream(...) returned: stream.{kind}() has those of every step after it",
            where=where,
        )
    return node.declared_stream
