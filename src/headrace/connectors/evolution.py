"""Schema evolution of a table whose results have other columns than when it was created: new ones are added, and types stay."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.errors import SchemaError


def added(held: pa.Schema, made: pa.Schema, table: object) -> list[pa.Field]:
    """The columns that a table lacks; raises if one that it has is of another type.

    >>> [column.name for column in added(pa.schema([("n", pa.int64())]), pa.schema([("n", pa.int64()), ("note", pa.string())]), "table t")]
    ['note']
    >>> added(pa.schema([("n", pa.string())]), pa.schema([("n", pa.int64())]), "table t")
    Traceback (most recent call last):
    headrace.core.errors.SchemaError: column 'n' of table t is string, but results have it as bigint
      why: the present rows and the new ones could not be read as one table
      hint: give the results another name for it: n_bigint
    """
    for column in made:
        if column.name in held.names:
            before, now = _told(held.field(column.name).type), _told(column.type)
            if before != now:
                raise SchemaError(
                    f"column {column.name!r} of {table} is {before}, but results have it as {now}",
                    why="the present rows and the new ones could not be read as one table",
                    hint=f"give the results another name for it: {column.name}_{now.partition('(')[0].partition('<')[0]}",
                )
    return [column.with_nullable(True) for column in made if column.name not in held.names]


def _told(kind: pa.DataType) -> str:
    """A type as Spark names it; libraries have several of Arrow's types for one."""
    return type_name(_plain(kind))


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(kind.field(place).name, _plain(kind.field(place).type)) for place in range(kind.num_fields)])
    return kind
