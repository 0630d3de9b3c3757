"""Records as they are sent one by one, and their conversion to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from headrace.core.clock import to_datetime
from headrace.core.columns.moments import microseconds_of
from headrace.core.columns.schema import TIMESTAMP, declared, unit_of
from headrace.core.columns.values import UNFIT, column_of
from headrace.core.errors import SchemaError
from headrace.core.nearest import choices
from headrace.log.delivery import DeliveryOutcome
from headrace.log.files.layout import HEADERS
from headrace.log.topic import Topic

Value: TypeAlias = bytes | str | Mapping[str, Any] | None
Key: TypeAlias = bytes | str | int | tuple[Any, ...] | None
Headers: TypeAlias = Mapping[str, bytes] | None
Moment: TypeAlias = datetime | str | int

_PLAIN = frozenset({int, float, bool, type(None), datetime, date, time, timedelta, Decimal})
_EACH, _RECORD = 8, 64


class Buffer:
    """Records of one topic that wait to be sent, kept as columns: a column that no record has costs nothing."""

    __slots__ = ("_bytes_only", "_headers", "_keys", "_names", "_times", "_topic", "opened_at", "outcome", "size", "values")

    def __init__(self, topic: Topic, opened_at: int, outcome: DeliveryOutcome) -> None:
        self._topic = topic
        self.opened_at = opened_at
        self.outcome = outcome
        self.size = 0
        self.values: list[Value] = []
        self._keys: list[Key] = []
        self._times: list[datetime | None] = []
        self._headers: list[Headers] = []
        self._bytes_only = not topic.structured
        self._names = topic.names

    def add(self, value: Value, key: Key, moment: Moment | None, headers: Headers) -> int:
        """Add a record if it appears to fit this topic, and return its approximate size in bytes.

        Errors that only the columns show are raised when the buffer is sent.
        """
        # Exact types first: the check for a Mapping costs more than everything else here.
        if type(value) is bytes and self._bytes_only:
            size = _RECORD + len(value)
        else:
            if not (type(value) is dict and value.keys() <= self._names):
                _refuse(self._topic, value)
            size = weight(value)
        if moment is not None or headers is not None:
            self._add_optional(moment, headers)
        if key is not None:
            _put(self._keys, len(self.values), key)
        self.values.append(value)
        self.size += size
        return size

    def batch(self, topic: Topic, rows: Sequence[int] | None = None) -> pa.RecordBatch:
        """The records, or those with these numbers, as columns of the topic as it is now; columns that no record has are left out."""
        columns: list[list[Any]] = [self.values, self._keys, self._times, self._headers]
        for column in columns:
            if column:
                column.extend([None] * (len(self.values) - len(column)))
        if rows is not None:
            columns = [[column[row] for row in rows] if column else [] for column in columns]
        return batch_of(topic, Columns(*columns), self.opened_at)

    def _add_optional(self, moment: Moment | None, headers: Headers) -> None:
        if headers is not None and not isinstance(headers, Mapping):
            raise SchemaError(f"headers={headers!r} are not headers", hint='give a dict of names and bytes: {"trace": b"..."}')
        if moment is not None:
            _put(self._times, len(self.values), self._moment(moment))
        if headers is not None:
            _put(self._headers, len(self.values), headers)

    def _moment(self, moment: Moment) -> datetime:
        own = self._topic.time
        try:
            return to_datetime(microseconds_of(moment, None if own is None else unit_of(self._topic.columns.field(own))))
        except ValueError as error:
            raise SchemaError(f"time={moment!r}: {error}", hint='give a datetime, or ISO 8601 text: "2026-01-01T12:00:00Z"') from error


def _put(column: list[Any], number: int, value: object) -> None:
    if len(column) < number:
        column.extend([None] * (number - len(column)))
    column.append(value)


def weight(value: object) -> int:
    """The approximate size of a value in bytes, nested values included.

    >>> weight({"url": "/a", "count": 3})
    74
    """
    if type(value) is bytes or type(value) is str:
        return _RECORD + len(value)
    if type(value) is dict or isinstance(value, Mapping):
        size = _RECORD
        for item in value.values():
            kind = type(item)
            size += len(item) if kind is str or kind is bytes else _EACH if kind in _PLAIN else weight(item)
        return size
    if isinstance(value, list | tuple):
        return _RECORD + sum(map(weight, value))
    return _RECORD + (_EACH * len(value) if isinstance(value, Sized) else 0)


class Columns(NamedTuple):
    """The parts of records, each in a list; an empty list means that no record has that part."""

    values: list[Value]
    keys: list[Key]
    times: list[datetime | None]
    headers: list[Headers]


def batch_of(topic: Topic, records: Columns, sent_at: int) -> pa.RecordBatch:
    """Records as the columns of their topic; columns that no record has are left out. `sent_at` is the time of records without one."""
    values, keys, times, headers = records
    try:
        columns = _values(topic, values)
        if any(moment is not None for moment in times):
            columns |= _times(topic, times, values, sent_at)
        if any(key is not None for key in keys):
            columns |= _keys(topic, keys, values)
        if any(headers):
            columns["_headers"] = pa.array([list(each.items()) if each else [] for each in headers], HEADERS)
        if (topic.structured or columns["value"].null_count) and None in values:
            columns["_tombstone"] = pa.array([value is None for value in values])
        return pa.record_batch(columns)
    except UNFIT as error:
        raise SchemaError(
            f"a record does not fit topic {topic.name!r}: {error}",
            why="nothing of it was written",
            hint=f"the topic's columns are {declared(topic.columns)}",
        ) from error


def _values(topic: Topic, values: list[Value]) -> dict[str, pa.Array]:
    if not topic.structured:
        try:
            return {"value": pa.array(values, pa.binary())}
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            plain = [value.get("value") if isinstance(value, Mapping) else value for value in values]
            return {"value": pa.array(plain, pa.binary())}
    rows = [{} if value is None else value for value in values]
    return {column.name: column_of([row.get(column.name) for row in rows], column) for column in topic.columns}  # type: ignore[union-attr]


def _times(topic: Topic, times: list[datetime | None], values: list[Value], sent_at: int) -> dict[str, pa.Array]:
    if topic.time is None:
        return {"_time": pa.array([to_datetime(sent_at) if moment is None else moment for moment in times], TIMESTAMP)}
    field = topic.columns.field(topic.time)
    return {topic.time: column_of(_combined(field, times, values), field)}


def _keys(topic: Topic, keys: list[Key], values: list[Value]) -> dict[str, pa.Array]:
    if not topic.key:
        return {"_key": pa.array([key.encode() if isinstance(key, str) else key for key in keys], pa.binary())}
    parts = [key if isinstance(key, tuple) else (key,) for key in keys]
    columns = {}
    for place, name in enumerate(topic.key):
        given = [None if part == (None,) else part[place] for part in parts if _fitting(topic, part)]
        field = topic.columns.field(name)
        columns[name] = column_of(_combined(field, given, values), field)
    return columns


def _combined(field: pa.Field, given: Sequence[object], values: list[Value]) -> list[object]:
    """A column from separately given values (a tombstone has nothing else) and from the records' own values."""
    written = [value.get(field.name) if isinstance(value, Mapping) else None for value in values]
    for one, other in zip(given, written, strict=True):
        if one is not None and other is not None and _plain(one, field) != _plain(other, field):
            raise ValueError(f"{one!r} was given with the record, whose column {field.name!r} has {other!r}")
    return [other if one is None else one for one, other in zip(given, written, strict=True)]


def _plain(value: object, field: pa.Field) -> object:
    """A value in the form used for comparing two values."""
    return microseconds_of(value, unit_of(field)) if pa.types.is_timestamp(field.type) else value


def _fitting(topic: Topic, part: tuple[object, ...]) -> bool:
    if part != (None,) and len(part) != len(topic.key):
        raise ValueError(f"the key {part!r} has {len(part)} parts, the topic's key is {', '.join(topic.key)}")
    return True


def _refuse(topic: Topic, value: object) -> None:
    """Raise if a value that is not of the usual type cannot be a record of the topic."""
    if value is None:
        return
    if isinstance(value, Mapping):
        unknown = next((name for name in value if name not in topic.names), None)
        if unknown is not None:
            raise SchemaError(
                f"topic {topic.name!r} has no column {unknown!r}",
                why="nothing was written",
                hint=choices(unknown, topic.columns.names, "columns"),
            )
    elif topic.structured:
        raise SchemaError(
            f"topic {topic.name!r} has columns, {type(value).__name__} is not a record of it",
            hint=f"send a dict with {', '.join(topic.columns.names)}",
        )
    elif not isinstance(value, bytes | str):
        raise SchemaError(
            f"topic {topic.name!r} takes bytes, not {type(value).__name__}", hint="encode the value, or create the topic with schema="
        )
