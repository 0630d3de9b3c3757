"""Declared streams, built from columns, names of the key, and the text of the event time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace.core.columns.names import Names, listed
from headrace.core.columns.schema import type_name
from headrace.core.durations import spelled
from headrace.core.errors import PlanError
from headrace.plan.nodes import Source, column
from headrace.plan.source_time import event_time
from headrace.plan.watermarks import Bounded, LossBudget, Watermark


@dataclass(frozen=True)
class SourceArguments:
    """The arguments of a stream: its columns and key, its event time, what becomes of late records, and who has the records."""

    columns: pa.Schema
    key: Names = ()
    time: str | None = None
    watermark: Watermark | None = None
    late: str = "side"
    connector: Any = None
    align: timedelta | None = None


def source(name: str, asked: SourceArguments, at: str | None) -> Source:
    moment = None if asked.time is None else event_time(asked.time, name, asked.columns, at)
    node = Source(name, asked.columns, at, listed(asked.key), moment, asked.watermark, asked.late, asked.connector, asked.align)
    _refuse_nested_keys(node)
    if node.align is not None and node.align < timedelta(0):
        raise PlanError(
            f"align={spelled(node.align)} of stream {name!r} is negative",
            why="it would be read behind the slowest other stream: two such streams would wait for each other",
            hint='say how far it may be ahead: align="10 minutes"',
            where=at,
        )
    if node.late not in ("side", "drop"):
        raise PlanError(f"late={node.late!r} is not known", hint='"side" (to the topic <stream>.late) or "drop" (only counted)', where=at)
    _refuse_watermarks(node)
    if node.connector is not None:
        if not hasattr(node.connector, "input"):
            raise PlanError(
                f"source={node.connector!r} of stream {name!r} cannot be read", hint='source=hr.kafka("topic", servers="...")', where=at
            )
        node.connector.check(node.columns)
    return node


def table_source(name: str, key: tuple[str, ...], connector: Any, at: str | None) -> Any:
    """The connector of a table, which tells what is removed."""
    if not key or not hasattr(connector, "as_table"):
        raise PlanError(
            f"table {name!r} has no key, or no source that tells what is removed", hint='key="id", source=hr.kafka(...)', where=at
        )
    return connector.as_table(key)


def _refuse_nested_keys(node: Source) -> None:
    for name in node.key:
        kind = column(node, name, "key").type
        if pa.types.is_nested(kind):
            raise PlanError(
                f"key {name!r} of stream {node.name!r} is {type_name(kind)}",
                why="records are spread and told apart by plain values",
                hint="name columns that are no arrays, maps or structs",
                where=node.where,
            )


def _refuse_watermarks(node: Source) -> None:
    if node.time is None:
        if node.watermark is not None:
            raise PlanError(
                f"stream {node.name!r} has a watermark but no time", hint="say where the event time is: time=", where=node.where
            )
        return
    if node.watermark is not None and not isinstance(node.watermark, Bounded | LossBudget):
        raise PlanError(
            f"watermark={node.watermark!r} of stream {node.name!r} is not a watermark",
            hint='say how late records may be: watermark=hr.bounded("30 seconds")',
            where=node.where,
        )
    if node.watermark is None:
        raise PlanError(
            f"stream {node.name!r} has a time but no watermark",
            why="no window of it would ever close",
            hint='say how late records may be: watermark=hr.bounded("30 seconds")',
            where=node.where,
        )
