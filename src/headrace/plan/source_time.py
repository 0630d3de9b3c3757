"""The event time of a stream: one of its columns, or a Spark SQL expression over them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.core.columns.schema import quoted, type_name
from headrace.core.errors import PlanError
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.expressions.terms import Field
from headrace.plan.expressions.unfused import MOVING

_READABLE = "an epoch's watermark is computed before Spark reads its records"


@dataclass(frozen=True)
class EventTime:
    """A checked expression of type timestamp. Its text is what the user wrote."""

    text: str
    typed: Typed

    @property
    def column(self) -> str | None:
        """The column, if it is one; None for any other expression."""
        return self.typed.term.name if isinstance(self.typed.term, Field) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads, by their declared names, each once."""
        return tuple(dict.fromkeys(term.name for term in self.typed.term.walk() if isinstance(term, Field)))

    def __str__(self) -> str:
        return self.column or self.typed.words


def event_time(text: str, stream: str, columns: pa.Schema, where: str | None) -> EventTime:
    """The event time that a user wrote; refused if it is not a timestamp, or if only Spark can evaluate it.

    >>> str(event_time("timestamp_millis(ts)", "clicks", pa.schema([("ts", pa.int64())]), None))
    'timestamp_millis(ts)'
    """
    if not isinstance(text, str):
        raise PlanError(f"time={text!r} of stream {stream!r} is neither a column nor an expression", hint='name it: time="at"', where=where)
    # A name with a blank or a dash is a column before it is an expression.
    written = quoted(text) if text in columns.names else text
    typed = check(parse(written, where), columns)
    said = f"time {text!r} of stream {stream!r}"
    if MOVING in typed.reason:
        raise PlanError(f"{said} is another one each time it is read", why="a replay would give other results", where=where)
    if not typed.fused or typed.type is None:
        hint = "use a function that needs no Spark, as timestamp_millis, timestamp_seconds, to_timestamp or cast"
        raise PlanError(f"{said} is evaluated by Spark: {typed.reason}", why=_READABLE, hint=hint, where=where)
    time = EventTime(text, typed)
    if str(typed.type) not in ("timestamp[us, tz=UTC]", "timestamp[us]"):
        raise PlanError(f"{said} is {_named(typed.type)}, not a timestamp", hint=_remedy(text, typed.type), where=where)
    if not time.columns:
        raise PlanError(f"{said} reads no column", why="every record would have the same time", hint='name one: time="at"', where=where)
    return time


def _named(kind: pa.DataType) -> str:
    return "null" if pa.types.is_null(kind) else type_name(kind)


def _remedy(text: str, kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return f'say its unit: time="timestamp_millis({text})" or "timestamp_seconds({text})"'
    if pa.types.is_string(kind):
        return f'read it as one: time="to_timestamp({text})"'
    if pa.types.is_date(kind):
        return f'the day begins at midnight UTC: time="cast({text} as timestamp)"'
    if pa.types.is_struct(kind):
        return f"name a field of it: {', '.join(f'{text}.{field.name}' for field in kind)}"
    return "give a column or an expression of type timestamp"
