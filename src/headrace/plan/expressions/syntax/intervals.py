"""Interval literals: `interval 5 minutes`, `interval '1' day`, `interval '1 02:03:04' day to second`."""

from __future__ import annotations

import re
from decimal import Decimal

from headrace.plan.expressions.syntax.nodes import Interval

_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
_MONTHS = {"month": 1, "year": 12}
_CLOCK = ["day", "hour", "minute", "second"]
_CLOCK_SIGNS = {"day": "", "hour": " ", "minute": ":", "second": ":"}

Length = tuple[int, Interval]


def unit(word: str) -> str | None:
    """The unit that a word names, in the singular, or None.

    >>> unit("MINUTES")
    'minute'
    """
    name = word.lower()
    for candidate in (name, name.removesuffix("s")):
        if candidate in _MICROSECONDS or candidate in _MONTHS:
            return candidate
    return None


def combined(parts: list[tuple[str, str]]) -> Length | None:
    """The length of (number, unit) pairs; None for what Spark refuses: a fraction of a minute, months with days."""
    if all(name in _MONTHS for _, name in parts):
        counts = [(int(number), name) for number, name in parts if re.fullmatch(r"\s*[+-]?\d+\s*", number)]
        return (sum(count * _MONTHS[name] for count, name in counts), Interval.MONTH) if len(counts) == len(parts) else None
    if any(name in _MONTHS for _, name in parts):
        return None
    total = 0
    for number, name in parts:
        fraction = name == "second"
        if not re.fullmatch(r"\s*[+-]?(\d+(\.\d{0,6})?|\.\d{1,6})\s*" if fraction else r"\s*[+-]?\d+\s*", number):
            return None
        total += int(Decimal(number.strip()) * _MICROSECONDS[name])
    only_days = all(name in ("day", "week") for _, name in parts)
    return total, Interval.DAY if only_days else Interval.DAY_TIME


def spelled(text: str) -> Length | None:
    """The length of a text such as `5 minutes` or `1 day 2 hours`."""
    words = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE).split()
    names = [unit(word) for word in words[1::2]]
    if not words or len(words) % 2 or None in names:
        return None
    return combined([(number, name) for number, name in zip(words[::2], names, strict=True) if name is not None])


def ranged(text: str, start: str, end: str) -> Length | None:
    """The length of `'1 02:03:04' day to second` and of `'1-2' year to month`."""
    if (start, end) == ("year", "month"):
        match = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text)
        if match is None or int(match[3]) > 11:
            return None
        months = int(match[2]) * 12 + int(match[3])
        return (-months if match[1] == "-" else months), Interval.MONTH
    if start not in _CLOCK or end not in _CLOCK or _CLOCK.index(start) >= _CLOCK.index(end):
        return None
    names = _CLOCK[_CLOCK.index(start) : _CLOCK.index(end) + 1]
    digits = r"(\d+)" + "".join(f"{_CLOCK_SIGNS[name]}(\\d{{1,2}})" for name in names[1:])
    fraction = r"(?:[.](\d{1,6}))?" if end == "second" else ""
    match = re.fullmatch(rf"\s*([+-]?){digits}{fraction}\s*", text)
    if match is None:
        return None
    numbers = [int(group) for group in match.groups()[1 : len(names) + 1]]
    if any(number > {"hour": 23, "minute": 59, "second": 59}[name] for number, name in zip(numbers[1:], names[1:], strict=True)):
        return None
    total = sum(number * _MICROSECONDS[name] for number, name in zip(numbers, names, strict=True))
    if end == "second":
        total += int((match.groups()[-1] or "0").ljust(6, "0"))
    return (-total if match[1] == "-" else total), Interval.DAY_TIME
