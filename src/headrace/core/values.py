"""Python's values as columns, none of them changed on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

_FRACTIONAL = (float, Decimal)
_WHOLE = frozenset(kind.id for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_TIMES = frozenset(kind.id for kind in (pa.timestamp("us"), pa.date32(), pa.duration("us"), pa.time64("us")))


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column of a type, or `pa.ArrowException` where one does not fit.

    By itself pyarrow cuts 1.5 down to fit an int, and takes a number of seconds with a fraction for microseconds.

    >>> column_of([1, 2.0, None], pa.int32()).to_pylist()
    [1, 2, None]
    """
    column = pa.array(values, kind)
    _refuse_what_was_cut(values, kind)
    return column


def _refuse_what_was_cut(values: Sequence[Any], kind: pa.DataType) -> None:
    if kind.num_fields:
        for parts, part in _parts([value for value in values if value is not None], kind):
            _refuse_what_was_cut(parts, part)
    elif (kind.id in _WHOLE or kind.id in _TIMES) and any(issubclass(given, _FRACTIONAL) for given in set(map(type, values))):
        _refuse_fractions(values, kind)


def _parts(values: Sequence[Any], kind: pa.DataType) -> Iterator[tuple[Sequence[Any], pa.DataType]]:
    """What arrays, maps and structs are made of, by its type."""
    if pa.types.is_map(kind):
        pairs = [pair for value in values for pair in (value.items() if isinstance(value, Mapping) else value)]
        yield [key for key, _ in pairs], kind.key_type
        yield [item for _, item in pairs], kind.item_type
    elif pa.types.is_struct(kind):
        rows = [value if isinstance(value, Mapping) else dict(value) for value in values]
        yield from (([row.get(field.name) for row in rows], field.type) for field in kind)
    else:
        yield [item for value in values for item in value], kind.value_type


def _refuse_fractions(values: Sequence[Any], kind: pa.DataType) -> None:
    numbers = [value for value in values if isinstance(value, _FRACTIONAL)]
    if kind.id in _TIMES:
        raise pa.ArrowInvalid(f"Could not convert {numbers[0]!r}: a time is a datetime, or an int of microseconds since 1970")
    broken = next((number for number in numbers if number != int(number)), None)
    if broken is not None:
        raise pa.ArrowInvalid(f"Could not convert {broken!r}: it is no whole number, as {kind} has them")
