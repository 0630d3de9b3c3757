"""Python values as columns, without any silent change of a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.core.columns.moments import as_datetime, microseconds_of, moments, moments_of_column, shown
from headrace.core.columns.schema import declared_type, unit_of

_FRACTIONAL = (float, Decimal)
_WHOLE = frozenset(kind.id for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_FLOATS = frozenset(kind.id for kind in (pa.float32(), pa.float64()))
# The errors that pyarrow raises for a value that does not fit, and those raised here.
UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError, KeyError)


def column_of(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Values as a column. A value that does not fit is a ValueError that names the column and, if there are several records, the record.

    On its own, pyarrow cuts 1.5 down to fit an int, reads any number as microseconds or days, and reads a text as an array of its letters.

    >>> column_of([1, 2.0, None], pa.field("n", pa.int32())).to_pylist()
    [1, 2, None]
    """
    try:
        return _column(values, field)
    except UNFIT as error:
        place = next((place for place, value in enumerate(values) if _problem(value, field) is not None), None)
        record = "" if place is None or len(values) == 1 else f" of record {place + 1} of {len(values)}"
        reason = str(error) if place is None else _problem(values[place], field)
        raise ValueError(f"column {field.name!r}{record}: {reason}") from error


def fitted(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """A column as one of a declared type; raises what is in `UNFIT` where a value does not fit."""
    kind = field.type
    if column.type.equals(kind):
        return column
    if pa.types.is_timestamp(kind):
        return moments_of_column(column, field)
    if pa.types.is_date(kind) and pa.types.is_integer(column.type):
        raise ValueError(f"a number is not of type {declared_type(field)}")
    if not pa.types.is_nested(kind) or not _takes_others_for_moments(column.type, kind):
        return column.cast(kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type) and [one.name for one in column.type] == [one.name for one in kind]:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        parts = [fitted(part, one) for part, one in zip(whole.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=whole.is_null())
    return column_of(column.to_pylist(), field)


def _takes_others_for_moments(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast would take something else for a timestamp, at any depth."""
    if pa.types.is_timestamp(target):
        return not bool(pa.types.is_timestamp(source))
    if source.num_fields != target.num_fields:
        return bool(pa.types.is_nested(target))
    return any(_takes_others_for_moments(source.field(place).type, target.field(place).type) for place in range(target.num_fields))


def _problem(value: Any, field: pa.Field) -> str | None:
    try:
        _column([value], field)
    except (pa.ArrowException, TypeError, OverflowError, AttributeError, KeyError):
        return f"{shown(value)} is not of type {declared_type(field)}"
    except ValueError as error:
        return str(error)
    return None


def _column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    if pa.types.is_timestamp(field.type):
        return moments(values, field)
    column = pa.array(_ready(values, field), field.type)
    if field.type.id == pa.float32().id and any(math.isinf(one) and not math.isinf(value) for one, value in _pairs(column, values)):
        raise OverflowError
    return column


def _ready(values: Sequence[Any], field: pa.Field) -> Sequence[Any]:
    """Values as pyarrow reads them without a change; a value that it would change is refused."""
    kind = field.type
    if pa.types.is_timestamp(kind):
        return [None if value is None else as_datetime(microseconds_of(value, unit_of(field)), kind) for value in values]
    if pa.types.is_date(kind):
        return [None if value is None else _day(value) for value in values]
    if pa.types.is_struct(kind):
        return _structs(values, kind)
    if pa.types.is_map(kind):
        return _maps(values, kind)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if kind.id in _WHOLE and any(issubclass(given, _FRACTIONAL) for given in set(map(type, values))):
        _refuse_fractions(values)
    if kind.id in _FLOATS and bool in set(map(type, values)):
        raise TypeError
    return values


def _structs(values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    rows = [value if value is None or isinstance(value, Mapping) else dict(value) for value in values]
    names = {field.name for field in kind}
    unknown = next((name for row in rows if row is not None for name in row if name not in names), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is not a field of it; its fields are {', '.join(field.name for field in kind)}")
    parts = {field.name: _ready([None if row is None else row.get(field.name) for row in rows], field) for field in kind}
    return [None if row is None else {name: part[place] for name, part in parts.items()} for place, row in enumerate(rows)]


def _maps(values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    pairs = [None if value is None else list(value.items() if isinstance(value, Mapping) else value) for value in values]
    flat = [pair for one in pairs if one is not None for pair in one]
    keys, items = _ready([key for key, _ in flat], kind.key_field), _ready([item for _, item in flat], kind.item_field)
    return _regrouped(list(zip(keys, items, strict=True)), pairs)


def _lists(values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    if any(isinstance(value, str | bytes | Mapping) for value in values):
        raise TypeError
    lists = [None if value is None else list(value) for value in values]
    return _regrouped(_ready([item for one in lists if one is not None for item in one], kind.value_field), lists)


def _regrouped(flat: Sequence[Any], like: list[list[Any] | None]) -> list[Any]:
    """Items regrouped into lists of the same lengths as in another column."""
    found, place = [], 0
    for one in like:
        found.append(None if one is None else list(flat[place : place + len(one)]))
        place += 0 if one is None else len(one)
    return found


def _day(value: Any) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"{shown(value)} is not of type date: it is not ISO 8601, as 2026-01-01 is") from error
    if isinstance(value, datetime):
        raise ValueError(f"{shown(value)} is not of type date: it has a time of day")
    if not isinstance(value, date):
        raise ValueError(f"{shown(value)} is not of type date")
    return value


def _refuse_fractions(values: Sequence[Any]) -> None:
    numbers = [value for value in values if isinstance(value, _FRACTIONAL)]
    broken = next((number for number in numbers if not math.isfinite(number) or number != int(number)), None)
    if broken is not None:
        raise ValueError(f"{shown(broken)} is not a whole number")


def _pairs(column: pa.Array, values: Sequence[Any]) -> list[tuple[float, Any]]:
    return [(one, value) for one, value in zip(column.to_pylist(), values, strict=True) if one is not None]
