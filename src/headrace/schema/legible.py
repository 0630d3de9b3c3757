"""Records as readable text: JSON, with bytes as base64 and moments in ISO 8601."""

from __future__ import annotations

import polars as pl
from polars.datatypes import DataTypeClass

# The years 1 to 9999, in microseconds and in days: beyond about the year 262,000 polars ends the process instead of writing a moment.
_MOMENTS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
# The same in other units; no number of nanoseconds is beyond.
_BOUNDS = {"us": _MOMENTS, "ms": (_MOMENTS[0] // 1_000, _MOMENTS[1] // 1_000), "ns": (-(2**63), 2**63 - 1)}
_DAYS = (-719_162, 2_932_896)


def as_json(records: pl.DataFrame) -> pl.Series:
    """Each record as a JSON object. A moment outside of the years 1 to 9999 is written as its stored number.

    >>> as_json(pl.DataFrame({"n": [1], "raw": [b"\\xff"]})).to_list()
    ['{"n":1,"raw":"/w=="}']
    """
    columns = [_legible(pl.col(name), kind).alias(name) for name, kind in records.schema.items()]
    return records.select(pl.struct(columns).struct.json_encode()).to_series()


def key_text(records: pl.DataFrame, key: tuple[str, ...]) -> pl.Series:
    """The key of each record as text that is unique to it; NaN, infinity and null are distinct.

    >>> key_text(pl.DataFrame({"n": [float("nan"), None, -0.0]}), ("n",)).to_list()
    ['{"n":"NaN"}', '{"n":null}', '{"n":"0.0"}']
    """
    kinds = {name: records.schema[name] for name in key}
    plain = [pl.col(name).to_physical() if kind.is_temporal() else floats_as_text(name, kind) for name, kind in kinds.items()]
    return as_json(records.select(plain))


def floats_as_text(name: str, kind: pl.DataType) -> pl.Expr:
    """A key column whose NaN and infinity JSON would write as null, as text; the two zeros are one key."""
    value = pl.col(name)
    return pl.when(value == 0).then(0.0).otherwise(value).cast(pl.String).alias(name) if kind.is_float() else value


def moment_text(value: pl.Expr, kind: pl.Datetime | pl.Date, fraction: str = "%.f") -> pl.Expr:
    """A moment in ISO 8601, or outside of the years 1 to 9999 its stored number; in UTC if it has a zone."""
    number = value.to_physical()
    known = number.is_between(*(_DAYS if isinstance(kind, pl.Date) else _BOUNDS[kind.time_unit]))
    return pl.coalesce(pl.when(known).then(value).dt.to_string(_written(kind, fraction)), number.cast(pl.String))


def _legible(value: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if isinstance(kind, pl.Map):
        pairs = pl.List(pl.Struct({"key": kind.key, "value": kind.value}))
        return _legible(value.cast(pairs), pairs)
    if isinstance(kind, pl.Array):
        return _legible(value.arr.to_list(), pl.List(kind.inner))
    if isinstance(kind, pl.List):
        return value.list.eval(_legible(pl.element(), _known(kind.inner)))
    if isinstance(kind, pl.Struct):
        parts = [_legible(value.struct.field(part.name), _known(part.dtype)).alias(part.name) for part in kind.fields]
        return pl.when(value.is_not_null()).then(pl.struct(parts)) if parts else value
    if isinstance(kind, pl.Datetime | pl.Date):
        return moment_text(value, kind)
    return value.bin.encode("base64") if kind == pl.Binary else value


def _written(kind: pl.Datetime | pl.Date, fraction: str) -> str:
    if isinstance(kind, pl.Date):
        return "%Y-%m-%d"
    return f"%Y-%m-%dT%H:%M:%S{fraction}{'Z' if kind.time_zone else ''}"


def _known(kind: pl.DataType | DataTypeClass) -> pl.DataType:
    return kind() if isinstance(kind, DataTypeClass) else kind
