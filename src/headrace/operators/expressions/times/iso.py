"""The common forms of timestamps in text, read byte by byte over whole columns: 2024-02-29T12:34:56.789Z and its kin.

Other forms are left to the slower reader, which knows every form.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Columns: TypeAlias = list[npt.NDArray[np.uint8]]
Numbers: TypeAlias = npt.NDArray[np.signedinteger]
Flags: TypeAlias = npt.NDArray[np.bool_]

_DATE, _SECONDS, _LONGEST = 10, 19, 32
_ZERO = np.uint8(ord("0"))
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int32)
_MICROSECONDS_A_DAY = 86_400_000_000


def read(text: pl.Series) -> tuple[Numbers, Flags]:
    """(microseconds since 1970 in UTC, where the text has a common form)."""
    moments, known = np.zeros(len(text), np.int64), np.zeros(len(text), np.bool_)
    array = text.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        if length == _DATE or _SECONDS <= length <= _LONGEST:
            rows = np.flatnonzero(lengths == length)
            starts = offsets[rows]
            moments[rows], known[rows] = _one_length([data[starts + place] for place in range(length)])
    return moments, known & ~text.is_null().to_numpy()


def _one_length(signs: Columns) -> tuple[Numbers, Flags]:
    days, real = _days(signs)
    moments = days.astype(np.int64) * _MICROSECONDS_A_DAY
    if len(signs) == _DATE:
        return moments, real
    seconds, timed = _clock(signs[10:19])
    rest, closed = _rest(signs[_SECONDS:], len(days))
    return moments + seconds.astype(np.int64) * 1_000_000 + rest, real & timed & closed


def _number(signs: Columns) -> tuple[Numbers, Flags]:
    """The number that columns of digits make, and where all are digits."""
    digits = [sign - _ZERO for sign in signs]
    value = digits[0].astype(np.int32)
    real = digits[0] <= 9
    for digit in digits[1:]:
        value = value * 10 + digit
        real &= digit <= 9
    return value, real


def _days(signs: Columns) -> tuple[Numbers, Flags]:
    (year, is_year), (month, is_month), (day, is_day) = _number(signs[:4]), _number(signs[5:7]), _number(signs[8:10])
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    month = np.where(is_month & (month <= 12), month, np.int32(0))
    last = _MONTH_DAYS[month] + (leap & (month == 2))
    real = is_year & is_day & (month >= 1) & (day >= 1) & (day <= last) & (signs[4] == ord("-")) & (signs[7] == ord("-"))
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + np.where(month > 2, np.int32(-3), np.int32(9))) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468, real


def _clock(signs: Columns) -> tuple[Numbers, Flags]:
    """Seconds of the day from `T12:34:56`, with T or a blank before it."""
    (hour, is_hour), (minute, is_minute), (second, is_second) = (_number(signs[at : at + 2]) for at in (1, 4, 7))
    begins = (signs[0] == ord("T")) | (signs[0] == ord(" "))
    colons = (signs[3] == ord(":")) & (signs[6] == ord(":"))
    real = is_hour & is_minute & is_second & begins & colons & (hour <= 23) & (minute <= 59) & (second <= 59)
    return (hour * 60 + minute) * 60 + second, real


def _rest(signs: Columns, rows: int) -> tuple[Numbers, Flags]:
    """Microseconds from what follows the seconds: a fraction, and Z or an offset of hours and minutes."""
    value, known = _fraction(signs, rows)
    if len(signs) >= 1:
        more, fits = _fraction(signs[:-1], rows)
        zulu = fits & (signs[-1] == ord("Z"))
        value, known = np.where(zulu, more, value), known | zulu
    if len(signs) >= 6:
        more, fits = _fraction(signs[:-6], rows)
        (hours, is_hours), (minutes, is_minutes) = _number(signs[-5:-3]), _number(signs[-2:])
        east, west = signs[-6] == ord("+"), signs[-6] == ord("-")
        offset = (hours * 60 + minutes).astype(np.int64) * 60_000_000
        zoned = fits & is_hours & is_minutes & (hours <= 17) & (minutes <= 59) & (signs[-3] == ord(":")) & (east | west)
        value, known = np.where(zoned, more - np.where(east, offset, -offset), value), known | zoned
    return value, known


def _fraction(signs: Columns, rows: int) -> tuple[Numbers, Flags]:
    """Microseconds from `.789`; digits beyond the sixth are cut off, and `.` alone is nothing."""
    value, known = np.zeros(rows, np.int32), np.ones(rows, np.bool_)
    if len(signs) > 1:
        value, known = _number(signs[1:7])
        value *= 10 ** max(0, 7 - len(signs))
    if len(signs) > 7:
        known &= _number(signs[7:])[1]
    return value, known & (signs[0] == ord(".")) if signs else known
