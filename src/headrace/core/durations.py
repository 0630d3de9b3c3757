"""Durations as people write them, converted to `timedelta` once, at the border."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache

from headrace.core.errors import SettingsError

Duration = timedelta | str

_UNITS = {
    "us": 1, "microsecond": 1, "microseconds": 1,
    "ms": 1_000, "millisecond": 1_000, "milliseconds": 1_000,
    "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000, "seconds": 1_000_000,
    "m": 60_000_000, "min": 60_000_000, "minute": 60_000_000, "minutes": 60_000_000,
    "h": 3_600_000_000, "hour": 3_600_000_000, "hours": 3_600_000_000,
    "d": 86_400_000_000, "day": 86_400_000_000, "days": 86_400_000_000,
    "w": 604_800_000_000, "week": 604_800_000_000, "weeks": 604_800_000_000,
}  # fmt: skip
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_PART = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({_UNIT})(?![a-z])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_HINT = 'write a number and a unit: "30 seconds", "1h 30m", "500ms"'
# Ten thousand years: the sum of a few such durations and a moment fits into 64 bits of microseconds.
LONGEST = timedelta(days=3_652_500)


def duration(value: Duration) -> timedelta:
    """A `timedelta` from itself or from text such as `"30 seconds"` or `"1 hour 30 minutes"`.

    >>> duration("1h 30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        if abs(value) > LONGEST:
            raise _too_long(value)
        return value
    if not isinstance(value, str):
        raise SettingsError(f"{value!r} is not a duration", hint=_HINT)
    return _read(value)


@lru_cache(maxsize=64)  # a loop returns the same text each time
def _read(value: str) -> timedelta:
    if not _WHOLE.fullmatch(value.lower().rstrip()):
        raise SettingsError(f"{value!r} is not a duration", hint=_HINT)
    # Decimal, not float: a day in microseconds times a fraction must not round.
    total = sum(Decimal(count) * _UNITS[unit] for count, unit in _PART.findall(value.lower()))
    if total > LONGEST // timedelta(microseconds=1):
        raise _too_long(value)
    return timedelta(microseconds=round(total))


def microseconds(value: Duration) -> int:
    """A duration as a whole number of microseconds, the unit of time inside Headrace.

    >>> microseconds("2ms")
    2000
    """
    return duration(value) // timedelta(microseconds=1)


def spelled(value: timedelta) -> str:
    """A duration as people read it, exact, in the largest units that fit.

    >>> spelled(timedelta(minutes=90))
    '1 hour 30 minutes'
    """
    rest = value // timedelta(microseconds=1)
    if rest == 0:
        return "0 seconds"
    sign, rest = ("-", -rest) if rest < 0 else ("", rest)
    parts = []
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count} {unit}{'s' if count != 1 else ''}")
    return sign + " ".join(parts)


def _too_long(value: Duration) -> SettingsError:
    return SettingsError(f"{value!r} is longer than the {LONGEST.days:,} days a duration may have", hint="None means forever")
