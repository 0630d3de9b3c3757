"""Rows as documents of an index: their names, and the columns that can be searched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from headrace.core.errors import SchemaError
from headrace.core.nearest import choices
from headrace.schema.legible import key_text

# OpenSearch accepts names of up to 512 bytes.
_LONGEST = 500


def names(rows: pl.DataFrame, key: tuple[str, ...]) -> list[str]:
    """The identity of each row, as text: a key of one column as it is where that is possible, any other as a JSON object.

    >>> names(pl.DataFrame({"user": ["ada", "", None, "{"]}), ("user",))
    ['ada', '{"user":""}', '{"user":null}', '{"user":"{"}']
    >>> names(pl.DataFrame({"x": [1], "y": ["a"]}), ("x", "y"))
    ['{"x":1,"y":"a"}']
    """
    whole = key_text(rows, key).to_list()
    if len(key) == 1 and (rows.schema[key[0]].is_integer() or rows.schema[key[0]] == pl.String):
        plain = rows.get_column(key[0]).cast(pl.String).to_list()
        whole = [value if value and not value.startswith("{") else other for value, other in zip(plain, whole, strict=True)]
    return [_short(name) for name in whole]


def searched(columns: pa.Schema, fields: Sequence[str] | None) -> tuple[str, ...]:
    """The columns in which words are searched: the given ones, or all texts."""
    if fields is None:
        return tuple(column.name for column in columns if pa.types.is_string(column.type))
    for name in fields:
        if name not in columns.names:
            raise SchemaError(f"fields: there is no column {name!r}", hint=choices(name, columns.names, "columns"))
        if not pa.types.is_string(columns.field(name).type):
            raise SchemaError(f"fields: {name!r} is {columns.field(name).type}", hint="words are searched in texts")
    return tuple(fields)


def _short(name: str) -> str:
    raw = name.encode()
    return name if len(raw) <= _LONGEST else f"{{sha256:{hashlib.sha256(raw).hexdigest()}}}"
