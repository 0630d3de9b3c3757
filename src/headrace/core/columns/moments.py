"""Moments as records bring them: datetimes, ISO 8601 text, and numbers. A number without a unit is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.clock import EPOCH, to_microseconds
from headrace.core.columns.schema import TIMESTAMP, UNITS, type_name, unit_of

# The years 1 to 9999, which every calendar here has.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_DIGITS = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
_UNITLESS = "is a number without a unit: declare the column as timestamp(s), timestamp(ms) or timestamp(us), or send ISO 8601 text"


def microseconds_of(value: Any, unit: str | None) -> int:
    """Microseconds since 1970 of a datetime, of ISO 8601 text (UTC if it has no zone), or of a number in a unit; else ValueError.

    >>> microseconds_of("1970-01-01T00:00:01Z", None), microseconds_of(1_500, "ms"), microseconds_of(1.5, "s")
    (1000000, 1500000, 1500000)
    """
    if isinstance(value, datetime | str):
        moment = to_microseconds(value if isinstance(value, datetime) else _from_text(value))
        # The zone of a moment may move it over the border.
        if not FIRST <= moment <= LAST:
            raise ValueError(f"{shown(value)} is outside of the years 1 to 9999")
        return moment
    if isinstance(value, date):
        return to_microseconds(datetime(value.year, value.month, value.day, tzinfo=UTC))
    if isinstance(value, bool) or not isinstance(value, Integral | float | Decimal):
        raise ValueError(f"{shown(value)} is not of type timestamp")
    if unit is None:
        raise ValueError(f"{shown(value)} {_UNITLESS}")
    return _from_number(value, unit)


def number_or_text(text: str, unit: str | None) -> int:
    """The same for a cell of text, which may also contain a number.

    >>> number_or_text("1500", "ms")
    1500000
    """
    return _from_number(Decimal(text.strip()), unit) if unit is not None and _DIGITS.fullmatch(text) else microseconds_of(text, unit)


def moments(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Values as a column of timestamps; ValueError if one of them is not a moment."""
    if set(map(type, values)) <= {datetime, type(None)}:
        return pa.array(values, field.type)
    # NumPy and pandas have moment types of their own, which know their unit.
    unit = unit_of(field)
    known = [_own(value) if isinstance(value, np.datetime64) else value for value in values]
    return pa.array([None if value is None else microseconds_of(value, unit) for value in known], pa.int64()).cast(field.type)


def moments_of_column(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """A column of moments, numbers or text as timestamps; ValueError if it is none of these."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind):
        return column.cast(field.type)
    unit = unit_of(field)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _scaled(column, unit).cast(field.type)
    return moments(column.to_pylist(), field)


def as_datetime(moment: int, kind: pa.DataType) -> datetime:
    """A moment as Python's datetime; without a zone for a column that has none."""
    known = EPOCH + timedelta(microseconds=moment)
    return known if kind.tz else known.replace(tzinfo=None)


def shown(value: object) -> str:
    """A value in a message, shortened if it is long."""
    text = repr(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _from_text(text: str) -> datetime:
    if _DIGITS.fullmatch(text):
        raise ValueError(f"{shown(text)} {_UNITLESS}")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not of type timestamp: it is not ISO 8601, as 2026-01-01T12:00:00Z is") from error


def _from_number(value: Any, unit: str) -> int:
    factor = UNITS[unit]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{shown(value)} is not of type timestamp")
    # By its digits: 0.1 is a tenth of a second, not the nearest float.
    exact = Decimal(int(value)) if isinstance(value, Integral) else Decimal(repr(value)) if isinstance(value, float) else value
    scaled = int((exact * factor).to_integral_value())
    if not FIRST <= scaled <= LAST:
        raise ValueError(f"{shown(value)} as timestamp({unit}) is outside of the years 1 to 9999")
    return scaled


def _scaled(column: pa.Array | pa.ChunkedArray, unit: str | None) -> pa.Array | pa.ChunkedArray:
    """Numbers of a unit, in microseconds."""
    present = column.drop_null()
    if unit is None and len(present):
        raise ValueError(f"{shown(present[0].as_py())} {_UNITLESS}")
    factor = UNITS[unit or "us"]
    low, high = -(-FIRST // factor), LAST // factor
    outside = pc.invert(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)))
    wrong = present.filter(outside.drop_null())
    if len(wrong):
        raise ValueError(f"{shown(wrong[0].as_py())} as timestamp({unit}) is outside of the years 1 to 9999")
    if pa.types.is_integer(column.type):
        return pc.multiply(column.cast(pa.int64()), factor)
    return pc.round(pc.multiply(column.cast(pa.float64()), float(factor))).cast(pa.int64())


def _own(value: np.datetime64) -> datetime:
    moment: Any = value.astype("datetime64[us]").item()
    if not isinstance(moment, datetime):
        raise ValueError(f"{value} is not of type {type_name(TIMESTAMP)}")
    return moment
