"""Keys of records, decoded from the bytes of Kafka's usual serializers: a tombstone has nothing but its key."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import declared_type
from headrace.core.columns.values import column_of

_FLOATS = {pa.float32(): ">f", pa.float64(): ">d"}


def decode_key(key: bytes, columns: Sequence[pa.Field]) -> Mapping[str, Any]:
    """The values of the key columns; raises `ValueError` with what is wrong.

    Several columns are a JSON array; an object with all of them is accepted, too.

    >>> decode_key((7).to_bytes(8), [pa.field("n", pa.int64())])
    {'n': 7}
    >>> decode_key(b'["a",1]', [pa.field("user", pa.string()), pa.field("n", pa.int64())])
    {'user': 'a', 'n': 1}
    """
    names = [column.name for column in columns]
    parsed = _parsed(key) if key[:1] in (b"{", b"[") else None
    if isinstance(parsed, dict) and set(names) <= set(parsed):
        values = [parsed[name] for name in names]
    elif len(columns) > 1:
        if not isinstance(parsed, list) or len(parsed) != len(columns):
            raise ValueError(f"the key is not JSON with {', '.join(names)}")
        values = parsed
    else:
        values = [_plain(key, columns[0].type)]
    return {column.name: _cast(value, column) for value, column in zip(values, columns, strict=True)}


def _plain(key: bytes, kind: pa.DataType) -> Any:
    if pa.types.is_binary(kind):
        return key
    width = kind.bit_width // 8 if pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) else 0
    if width and len(key) == width:
        if kind in _FLOATS:
            return struct.unpack(_FLOATS[kind], key)[0]
        return int.from_bytes(key, signed=True)
    try:
        text = key.decode()
    except UnicodeDecodeError as error:
        raise ValueError("the key is not UTF-8 text") from error
    return text if pa.types.is_string(kind) else _number(text)


def _cast(value: Any, column: pa.Field) -> Any:
    try:
        return column_of([value], column)[0].as_py()
    except ValueError as error:
        raise ValueError(f"the key has no {declared_type(column)} for {column.name}: {error}") from error


def _parsed(key: bytes) -> Any:
    return _tried(json.loads, key)


def _number(text: str) -> Any:
    found = _tried(json.loads, text)
    return text if found is None else found


def _tried(parse: Callable[[Any], Any], text: Any) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None
