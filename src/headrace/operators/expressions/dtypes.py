"""Arrow's types and Spark's constants in polars."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions import kinds
from headrace.plan.expressions.syntax.nodes import Interval, Kind, Scalar

MOMENT = pl.Datetime("us", "UTC")
"""The type of a timestamp."""
_SIMPLE: dict[Kind, pl.DataType] = {
    kinds.NULL: pl.Null(), kinds.BOOLEAN: pl.Boolean(), kinds.STRING: pl.String(), kinds.BINARY: pl.Binary(), kinds.DATE: pl.Date(),
    kinds.TINYINT: pl.Int8(), kinds.SMALLINT: pl.Int16(), kinds.INT: pl.Int32(), kinds.BIGINT: pl.Int64(),
    kinds.FLOAT: pl.Float32(), kinds.DOUBLE: pl.Float64(), kinds.TIMESTAMP_NTZ: pl.Datetime("us"), TIMESTAMP: MOMENT,
    Interval.DAY: pl.Duration("us"), Interval.DAY_TIME: pl.Duration("us"), Interval.MONTH: pl.Int32(),
}  # fmt: skip


def dtype(kind: Kind) -> pl.DataType:
    """The polars type of a Spark type.

    >>> dtype(pa.decimal128(10, 2))
    Decimal(precision=10, scale=2)
    """
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, pa.Decimal128Type):
        return pl.Decimal(kind.precision, kind.scale)
    if isinstance(kind, pa.ListType):
        return pl.List(dtype(kind.value_type))
    if isinstance(kind, pa.MapType):
        return pl.Map(dtype(kind.key_type), dtype(kind.item_type))
    if isinstance(kind, pa.StructType):
        return pl.Struct([pl.Field(field.name, dtype(field.type)) for field in kind])
    raise TypeError(f"{kind} has no polars type")


def literal(value: Scalar, kind: Kind) -> pl.Expr:
    """A constant as an expression of exactly its type."""
    if value is None:
        return pl.lit(None, dtype=dtype(kind))
    if isinstance(kind, pa.Decimal128Type):
        unscaled = int(Decimal(str(value)).scaleb(kind.scale))
        return pl.lit(unscaled, dtype=pl.Int128).reinterpret(dtype=dtype(kind))
    if kind == kinds.DATE or kinds.instant(kind) or isinstance(kind, Interval):
        physical = pl.Int32 if kind == kinds.DATE or kind is Interval.MONTH else pl.Int64
        return pl.lit(value, dtype=physical).cast(dtype(kind))
    return pl.lit(value, dtype=dtype(kind))
