"""Dates and timestamps in text, by the rules of Spark's casts.

A year has four to six digits (seven in a date), every other part one or two; a time zone may follow the seconds.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache

DATE_PATTERN = r"^([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?$"
TIMESTAMP_PATTERN = (
    r"^([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^0-9.].*)?)?)?)?)?)?$"
)
# The characters that Spark trims before it reads: white space and control characters up to the blank, and delete.
TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"

_SECONDS_PER_DAY = 86_400
_OFFSET = re.compile(r"(Z)|(?:(?:UTC|GMT|UT)?)([+-])(?:(\d)|(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)")
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_NOT_JAVAS = frozenset({"ROC", "Factory", "localtime"})
_SHORT_NAMES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 in the Gregorian calendar, extended both ways; None where there is no such day.

    >>> days_from_civil(1969, 12, 31)
    -1
    """
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    # The calendar repeats every 400 years, so any year is computed in a cycle that Python knows.
    cycles, place = divmod(year - 1, 400)
    try:
        return date(place + 401, month, day).toordinal() - date(1970, 1, 1).toordinal() + (cycles - 1) * 146_097
    except ValueError:
        return None


def read_date(text: str) -> int | None:
    """Days since 1970-01-01, or None where Spark refuses the text."""
    match = re.match(DATE_PATTERN, text.strip(TRIMMED), re.DOTALL)
    return _days(match) if match else None


def read_timestamp(text: str) -> int | str | None:
    """Microseconds since 1970-01-01 UTC, the text itself where a region's table of offsets decides, None where Spark refuses it."""
    match = re.match(TIMESTAMP_PATTERN, text.strip(TRIMMED), re.DOTALL)
    days = _days(match) if match else None
    if match is None or days is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[4:7])
    offset = 0 if match[9] is None else zone(match[9].strip(TRIMMED))
    if hour > 23 or minute > 59 or second > 59 or offset is None:
        return None
    if isinstance(offset, str):
        return text
    seconds = days * _SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset
    micros = seconds * 1_000_000 + int((match[8] or "")[:6].ljust(6, "0"))
    return micros if -(2**63) <= micros < 2**63 else None


def _days(match: re.Match[str]) -> int | None:
    year = int(match[2]) * (-1 if match[1] == "-" else 1)
    return days_from_civil(year, int(match[3] or 1), int(match[4] or 1))


@cache
def zone(name: str) -> int | str | None:
    """Seconds east of UTC for an offset, the name of what may be a region, or None for neither.

    >>> zone("+1:30"), zone("UTC-8"), zone("PST"), zone("+25:00")
    (5400, -28800, 'America/Los_Angeles', None)
    """
    name = re.sub(r"([+-])(\d):", r"\g<1>0\2:", name, count=1)
    name = re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", name, count=1)
    name = _SHORT_NAMES.get(name, name)
    match = _OFFSET.fullmatch(name)
    if match is None:
        return 0 if name in ("UTC", "GMT", "UT") else name if _REGION.fullmatch(name) and name not in _NOT_JAVAS else None
    if match[1]:
        return 0
    hours, minutes, seconds = int(match[3] or match[4]), int(match[5] or 0), int(match[6] or 0)
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        return None
    return -total if match[2] == "-" else total
