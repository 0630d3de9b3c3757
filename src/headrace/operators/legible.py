"""Records as text: JSON, in which bytes stand as base64."""

from __future__ import annotations

import polars as pl
from polars.datatypes import DataTypeClass


def as_json(records: pl.DataFrame) -> pl.Series:
    """Each record as a JSON object.

    >>> as_json(pl.DataFrame({"n": [1], "raw": [b"\\xff"]})).to_list()
    ['{"n":1,"raw":"/w=="}']
    """
    columns = [_legible(pl.col(name), kind).alias(name) for name, kind in records.schema.items()]
    return records.select(pl.struct(columns).struct.json_encode()).to_series()


def _legible(value: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if not _holds_bytes(kind):
        return value
    if isinstance(kind, pl.Map):
        return _legible(value.cast(_pairs(kind)), _pairs(kind))
    if isinstance(kind, pl.List):
        return value.list.eval(_legible(pl.element(), _known(kind.inner)))
    if isinstance(kind, pl.Struct):
        parts = [_legible(value.struct.field(part.name), _known(part.dtype)).alias(part.name) for part in kind.fields]
        return pl.when(value.is_not_null()).then(pl.struct(parts))
    return value.bin.encode("base64")


def _pairs(kind: pl.Map) -> pl.List:
    return pl.List(pl.Struct({"key": kind.key, "value": kind.value}))


def _holds_bytes(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.Map):
        return _holds_bytes(_pairs(kind))
    if isinstance(kind, pl.List):
        return _holds_bytes(_known(kind.inner))
    if isinstance(kind, pl.Struct):
        return any(_holds_bytes(_known(part.dtype)) for part in kind.fields)
    return kind == pl.Binary


def _known(kind: pl.DataType | DataTypeClass) -> pl.DataType:
    return kind() if isinstance(kind, DataTypeClass) else kind
