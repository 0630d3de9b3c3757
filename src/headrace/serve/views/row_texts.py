"""Rows of a view as JSON, a few at a time: what `as_json` writes, without a query of polars, which takes longer than a few rows do.

A query also releases Python's lock, which a server under load gets back only after its other threads.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from json.encoder import encode_basestring
from typing import Any

import polars as pl

from headrace.schema.legible import as_json

# With more rows than this, a query is quicker.
_FEW = 100
_BEGAN, _TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_FIRST, _LAST = ((moment.replace(tzinfo=UTC) - _BEGAN) // _TICK for moment in (datetime.min, datetime.max))  # noqa: DTZ901
_DAYS = date(1970, 1, 1).toordinal()

_Write = Callable[[Any], str]


class RowTexts:
    """Writes rows of one schema."""

    def __init__(self, schema: pl.Schema) -> None:
        writers = [_writer(kind) for kind in schema.values()]
        self._writers = [write for write in writers if write is not None]
        self._names = [f"{encode_basestring(name)}:" for name in schema]

    def of(self, rows: pl.DataFrame) -> list[str]:
        """Each row as a JSON object."""
        if len(self._writers) < len(self._names) or rows.height > _FEW:
            return as_json(rows).to_list()
        columns = []
        for name, write, column in zip(self._names, self._writers, rows.get_columns(), strict=True):
            # Moments and days as the numbers that they are stored as.
            values = (column.cast(pl.Int64) if column.dtype.is_temporal() else column).to_list()
            columns.append([name + ("null" if value is None else write(value)) for value in values])
        return [f"{{{','.join(parts)}}}" for parts in zip(*columns, strict=True)]


def _writer(kind: pl.DataType) -> _Write | None:
    """Writes a value of a type; None for types that only `as_json` writes."""
    if isinstance(kind, pl.Datetime):
        return _moment("Z" if kind.time_zone else "") if kind.time_unit == "us" else None
    return str if kind.is_integer() else _WRITERS.get(type(kind))


def _moment(zone: str) -> _Write:
    def write(number: int) -> str:
        if not _FIRST <= number <= _LAST:
            return f'"{number}"'
        moment = (_BEGAN + timedelta(microseconds=number)).replace(tzinfo=None)
        fraction = "auto" if moment.microsecond % 1_000 else "milliseconds" if moment.microsecond else "seconds"
        return f'"{moment.isoformat(timespec=fraction)}{zone}"'

    return write


def _day(number: int) -> str:
    ordinal = number + _DAYS
    return f'"{date.fromordinal(ordinal)}"' if 1 <= ordinal <= date.max.toordinal() else f'"{number}"'


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else "null"


_WRITERS: dict[type[pl.DataType], _Write] = {
    pl.Boolean: json.dumps,
    pl.Date: _day,
    pl.Float64: _float,
    pl.String: encode_basestring,
    pl.Binary: lambda value: f'"{base64.b64encode(value).decode()}"',
    pl.Decimal: lambda value: f'"{value:f}"',
}
