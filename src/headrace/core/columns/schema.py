"""Columns and their types: Spark's DDL text on the user's side, Arrow inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from headrace.core.columns.ddl import AS_TEXT, SIMPLE, TIMESTAMP, UNIT, UNITS, Ddl
from headrace.core.errors import SchemaError

__all__ = ["TIMESTAMP", "UNITS", "SchemaLike", "data_type", "ddl", "declared", "declared_type", "quoted", "schema", "type_name", "unit_of"]

SchemaLike: TypeAlias = str | pa.Schema | Mapping[str, str | pa.DataType]


def schema(columns: SchemaLike) -> pa.Schema:
    """An Arrow schema from Spark's DDL text, from a mapping of names to types, or from itself.

    A timestamp that records bring as a number says its unit: `timestamp(s)`, `timestamp(ms)` or `timestamp(us)`.

    >>> schema("url string, viewed_at timestamp(ms)").names
    ['url', 'viewed_at']
    """
    if isinstance(columns, pa.Schema):
        fields = [field.with_type(_ours(field.type)) for field in columns]
    elif isinstance(columns, str):
        fields = Ddl(columns).fields()
    elif isinstance(columns, Mapping):
        fields = [_field_of(name, kind) for name, kind in columns.items()]
    else:
        raise SchemaError(f"the columns are {columns!r}, which is {type(columns).__name__}", hint=AS_TEXT)
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"column {twice[0]!r} is declared twice", hint="give every column its own name")
    return pa.schema(fields)


def unit_of(field: pa.Field) -> str | None:
    """The unit in which a column of timestamps takes numbers; None if it takes none.

    >>> unit_of(schema("at timestamp(ms)").field("at"))
    'ms'
    """
    found = (field.metadata or {}).get(UNIT)
    return None if found is None else found.decode()


def data_type(text: str) -> pa.DataType:
    """An Arrow type from one Spark type name.

    >>> data_type("array<int>")
    ListType(list<element: int32>)
    """
    return Ddl(text).only_type()


def ddl(columns: pa.Schema) -> str:
    """Spark's DDL text of an Arrow schema.

    >>> ddl(schema("a int not null, b map<string,double>, at timestamp(ms)"))
    'a int NOT NULL, b map<string,double>, at timestamp'
    """
    return ", ".join(f"{_in_ddl(f.name)} {type_name(f.type)}{_null(f)}" for f in columns)


def declared(columns: pa.Schema) -> str:
    """Columns as a user declares them, with the units of timestamps; the inverse of `schema`.

    >>> declared(schema("url string, at timestamp(ms)"))
    'url string, at timestamp(ms)'
    """
    return ", ".join(f"{_in_ddl(f.name)} {declared_type(f)}{_null(f)}" for f in columns)


def declared_type(field: pa.Field) -> str:
    """The type of a column as a user declares it."""
    return _named(field, units=True)


def _named(field: pa.Field, *, units: bool) -> str:
    unit = unit_of(field) if units else None
    return type_name(field.type, units=units) + (f"({unit})" if unit else "")


def type_name(kind: pa.DataType, *, units: bool = False) -> str:
    """Spark's name of an Arrow type.

    >>> type_name(pa.decimal128(10, 2))
    'decimal(10,2)'
    """
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_map(kind):
        return f"map<{_named(kind.key_field, units=units)},{_named(kind.item_field, units=units)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{_named(kind.value_field, units=units)}>"
    if types.is_struct(kind):
        return "struct<" + ",".join(f"{_in_ddl(f.name)}:{_named(f, units=units)}{_null(f)}" for f in kind) + ">"
    if types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return "binary"
    for name, simple in SIMPLE.items():
        if simple.equals(kind):
            return name
    raise SchemaError(f"Arrow type {kind} has no Spark type", hint=f"use one of {', '.join(sorted(SIMPLE))}, decimal, array, map, struct")


def nullable_inside(kind: pa.DataType) -> pa.DataType:
    """A type whose elements and fields may all be null.

    >>> type_name(nullable_inside(data_type("array<struct<b: int NOT NULL>>")))
    'array<struct<b:int>>'
    """
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _nullable(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    return kind


def _nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, nullable_inside(field.type))


def quoted(name: str) -> str:
    """A name of a column as Spark SQL takes it for one, whatever is in it.

    >>> quoted("a `b` c")
    '`a ``b`` c`'
    """
    return "`" + name.replace("`", "``") + "`"


def _field_of(name: object, kind: object) -> pa.Field:
    if not isinstance(name, str) or not isinstance(kind, str | pa.DataType):
        raise SchemaError(f"column {name!r} is declared as {kind!r}", hint='give each name a type: {"url": "string"}')
    return pa.field(name, _ours(kind)) if isinstance(kind, pa.DataType) else Ddl(kind).only_field(name)


def _ours(kind: pa.DataType) -> pa.DataType:
    """Timestamps always count microseconds inside Headrace, whatever the Arrow type counts."""
    return pa.timestamp("us", kind.tz and "UTC") if pa.types.is_timestamp(kind) else kind


def _null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def _in_ddl(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)
