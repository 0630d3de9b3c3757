"""Columns of the engine in PostgreSQL: the type of each, and its values as the text that COPY takes."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv

from headrace.core.columns.schema import type_name
from headrace.core.errors import SchemaError

_TYPES = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "int": "integer", "bigint": "bigint", "float": "real",
    "double": "double precision", "string": "text", "binary": "bytea", "date": "date", "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone", "bool": "boolean",
}  # fmt: skip
# An existing column may be wider than the values written to it. Text goes into any type that parses it.
_WIDER = {
    "smallint": ("integer", "bigint", "numeric"), "integer": ("bigint", "numeric"), "bigint": ("numeric",),
    "real": ("double precision", "numeric"), "double precision": ("numeric",), "jsonb": ("json",),
}  # fmt: skip
_OPTIONS = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")


def type_of(column: pa.Field) -> str:
    """PostgreSQL's type for a column.

    >>> type_of(pa.field("at", pa.timestamp("us", "UTC"))), type_of(pa.field("tags", pa.list_(pa.string())))
    ('timestamp with time zone', 'jsonb')
    """
    if pa.types.is_nested(column.type):
        return "jsonb"
    if pa.types.is_decimal(column.type):
        return f"numeric({column.type.precision},{column.type.scale})"
    return _TYPES[type_name(column.type)]


def fits(column: pa.Field, present: str) -> bool:
    """Whether a column of the type `present`, as PostgreSQL names it, can store the values of a column.

    >>> fits(pa.field("n", pa.int32()), "bigint"), fits(pa.field("n", pa.int64()), "integer")
    (True, False)
    """
    wanted, base = type_of(column), present.partition("(")[0]
    if wanted in ("text", present) or base in _WIDER.get(wanted, ()):
        return True
    return wanted.startswith("numeric") and base == "numeric"


def as_csv(table: pa.Table) -> memoryview:
    """Rows as COPY reads them: null is empty, and text is quoted."""
    for index, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            table = table.set_column(index, column.name, _texts(table.column(index), _json))
        elif pa.types.is_binary(column.type):
            table = table.set_column(index, column.name, _texts(table.column(index), lambda value: "\\x" + value.hex()))
        elif pa.types.is_string(column.type) or pa.types.is_decimal(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.string()))
        elif pa.types.is_timestamp(column.type) and column.type.tz is not None:
            # Writing the zone with each value took seven eighths of the time of all columns: the connection's zone is UTC.
            table = table.set_column(index, column.name, table.column(index).cast(pa.timestamp("us")))
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, _OPTIONS)
    return memoryview(sink.getvalue())


def _texts(column: pa.ChunkedArray, written: Any) -> pa.Array:
    return pa.array([None if value is None else written(value) for value in column.to_pylist()], pa.string())


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        raise SchemaError("bytes within an array, map or struct have no form in JSON", hint="write them as text: base64(...)")
    return str(value)
