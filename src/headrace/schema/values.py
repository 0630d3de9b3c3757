"""Values as JSON and CSV write them, checked and converted for a column of a declared type."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, DecimalException
from typing import Any

import pyarrow as pa

from headrace.core.columns.moments import as_datetime, microseconds_of, number_or_text, shown
from headrace.core.columns.schema import type_name, unit_of

Reader = Callable[[Any], Any]

_PAIR = 2
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def json_reader(field: pa.Field, *, legible: bool = False) -> Reader:
    """Converts a parsed JSON value for a column of this type; raises ValueError if it does not fit.

    Bytes are the UTF-8 of text, or with `legible` base64, as `as_json` writes them. A map is an object, or an array of pairs.

    >>> json_reader(pa.field("at", pa.timestamp("us", "UTC")))("2026-01-01T12:00:00Z")
    datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.timezone.utc)
    """
    read = _json_reader(field, legible=legible)
    return lambda value: None if value is None else read(value)


def text_reader(field: pa.Field) -> Reader:
    """Converts a cell of a CSV file for a column of this type; an empty one is null unless the column is text.

    >>> text_reader(pa.field("n", pa.int32()))("17"), text_reader(pa.field("n", pa.int32()))("")
    (17, None)
    """
    types, kind = pa.types, field.type
    if types.is_string(kind) or types.is_binary(kind):
        return _json_reader(field)
    if types.is_timestamp(kind):
        return lambda text: None if text == "" else as_datetime(number_or_text(text, unit_of(field)), kind)
    if types.is_boolean(kind):
        parse: Reader = _boolean
    elif types.is_nested(kind):
        parse = _document
    elif types.is_integer(kind) or types.is_floating(kind):
        parse = _number(kind)
    else:
        parse = str
    read = _json_reader(field)
    return lambda text: None if text == "" else read(parse(text))


def _json_reader(field: pa.Field, *, legible: bool = False) -> Reader:
    types, kind = pa.types, field.type
    if types.is_timestamp(kind):
        return _timestamp(field)
    if types.is_list(kind):
        element = json_reader(kind.value_field, legible=legible)
        return lambda value: [element(item) for item in _of(list, value, kind)]
    if types.is_map(kind):
        return _map(kind, legible=legible)
    if types.is_struct(kind):
        return _struct(kind, legible=legible)
    if types.is_binary(kind) and legible:
        return lambda value: base64.b64decode(_of(str, value, kind), validate=True)
    for belongs, reader in _SIMPLE:
        if belongs(kind):
            return reader(kind)
    raise ValueError(f"{type_name(kind)} is a type that JSON and CSV cannot express")


def _map(kind: pa.DataType, *, legible: bool) -> Reader:
    name, key, item = (
        text_reader(kind.key_field),
        json_reader(kind.key_field, legible=legible),
        json_reader(kind.item_field, legible=legible),
    )

    def read(value: object) -> list[tuple[object, object]]:
        if type(value) is dict:
            return [(name(text), item(inner)) for text, inner in value.items()]
        return [(key(first), item(second)) for first, second in (_pair(pair, kind) for pair in _of(list, value, kind))]

    return read


def _pair(value: object, kind: pa.DataType) -> tuple[object, object]:
    """An entry of a map, as an array or as an object of key and value; never without a key."""
    found = (value.get("key"), value.get("value")) if isinstance(value, dict) and set(value) == {"key", "value"} else value
    if not isinstance(found, list | tuple) or len(found) != _PAIR or found[0] is None:
        raise _wrong(value, kind)
    return found[0], found[1]


def _struct(kind: pa.DataType, *, legible: bool) -> Reader:
    fields: Mapping[str, Reader] = {field.name: json_reader(field, legible=legible) for field in kind}

    def read(value: object) -> dict[str, object]:
        row = _of(dict, value, kind)
        unknown = next((name for name in row if name not in fields), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is not a field of {type_name(kind)}")
        return {name: fields[name](inner) for name, inner in row.items()}

    return read


def _text(kind: pa.DataType) -> Reader:
    return lambda value: _of(str, value, kind)


def _bytes(kind: pa.DataType) -> Reader:
    return lambda value: _of(str, value, kind).encode()


def _bool(kind: pa.DataType) -> Reader:
    return lambda value: _of(bool, value, kind)


def _integer(kind: pa.DataType) -> Reader:
    bound = 2 ** (kind.bit_width - 1)

    def read(value: object) -> int:
        if type(value) is not int or not -bound <= value < bound:
            raise _wrong(value, kind)
        return value

    return read


def _float(kind: pa.DataType) -> Reader:
    def read(value: object) -> float:
        if type(value) is not int and type(value) is not float:
            raise _wrong(value, kind)
        try:
            return float(value)
        except OverflowError as error:
            raise _wrong(value, kind) from error

    return read


def _decimal(kind: pa.DataType) -> Reader:
    def read(value: object) -> Decimal:
        try:
            found = Decimal(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else Decimal("nan")
            scaled = found.scaleb(kind.scale)
            if scaled != scaled.to_integral_value() or abs(scaled) >= 10**kind.precision:
                raise _wrong(value, kind)
        except DecimalException as error:
            raise _wrong(value, kind) from error
        return found

    return read


def _date(kind: pa.DataType) -> Reader:
    def read(value: object) -> date:
        try:
            return date.fromisoformat(_of(str, value, kind))
        except ValueError as error:
            raise _wrong(value, kind) from error

    return read


def _timestamp(field: pa.Field) -> Reader:
    return lambda value: as_datetime(microseconds_of(value, unit_of(field)), field.type)


def _number(kind: pa.DataType) -> Reader:
    def parse(text: str) -> int | float:
        try:
            return int(text) if pa.types.is_integer(kind) else float_of(text)
        except ValueError as error:
            raise _wrong(text, kind) from error

    return parse


def float_of(text: str) -> float:
    """The float that a text is; raises ValueError for a number such as 1e400, which is infinity only as a float."""
    found = float(text)
    if math.isinf(found) and "inf" not in text.lower():
        raise ValueError(f"{text} is too large a number")
    return found


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{shown(text)} is nested too deeply") from error


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise _wrong(text, pa.bool_())
    return text.lower() in _TRUE


def _of(expected: type, value: Any, kind: pa.DataType) -> Any:
    if type(value) is not expected:
        raise _wrong(value, kind)
    return value


def _wrong(value: object, kind: pa.DataType) -> ValueError:
    return ValueError(f"{shown(value)} is not of type {type_name(kind)}")


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Reader]], ...] = (
    (pa.types.is_string, _text),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_boolean, _bool),
    (pa.types.is_binary, _bytes),
    (pa.types.is_date, _date),
    (pa.types.is_decimal, _decimal),
)
