"""Values that the user's Python returns, checked against their declared types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.operators.expressions.dtypes import dtype

Check = Callable[[Any], bool]


class DeclaredColumn:
    """A declared column: whether a value fits it, and many values as a series."""

    def __init__(self, declared: pa.Field, role: str) -> None:
        self.name: str = declared.name
        self._kind, self._role, self._nullable = declared.type, role, declared.nullable
        self._fits = _fits(declared.type)
        self.mutable = pa.types.is_nested(declared.type)

    def conforming(self, value: Any) -> Any:
        """The value, converted to the column's type; an error that names the column if it does not fit."""
        if value is None:
            if self._nullable:
                return None
        elif self._fits(value):
            return value
        else:
            try:
                return pa.scalar(value, self._kind).as_py()
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError):
                pass
        raise TypeError(f"{self._role} {self.name} is {type_name(self._kind)}, not {value!r}")

    def series(self, values: Sequence[Any]) -> pl.Series:
        """Values that conform, as one column."""
        made = pl.from_arrow(pa.array(values, self._kind))
        assert isinstance(made, pl.Series)
        return made.cast(dtype(self._kind)).alias(self.name)


def columns_of(declared: pa.Schema, role: str) -> list[DeclaredColumn]:
    return [DeclaredColumn(field, role) for field in declared]


def _fits(kind: pa.DataType) -> Check:
    """A quick check that is certain when it returns true."""
    types = pa.types
    if types.is_signed_integer(kind):
        least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        return lambda value: type(value) is int and least <= value <= most
    if types.is_timestamp(kind):
        return (lambda value: type(value) is datetime and value.tzinfo is not None) if kind.tz else (lambda value: False)
    plain = {"bool": bool, "double": float, "string": str, "binary": bytes, "date32[day]": date}.get(str(kind))
    return lambda value: type(value) is plain
