"""Windows of a calendar: hours, days, weeks and months as the clocks of a place show them, exact over their changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from headrace.operators.windows.layouts import Apart

_DAY = 86_400_000_000
_HOUR = 3600
_EPOCH = date(1970, 1, 1)
# Days whose hours, and some around them, are in the years of Python's calendar.
_FIRST, _LAST = (date(1, 1, 3) - _EPOCH).days, (date(9999, 12, 29) - _EPOCH).days


@dataclass(frozen=True)
class CalendarLayout(Apart):
    """Windows of `count` units (`hour`, `day`, `week`, `month`) in a zone, each beginning `offset` (wall clock) after its unit.

    A day begins when the clocks of the place first show its beginning or, if they skip it, at the skip.
    """

    unit: str
    count: int
    zone: str
    offset: timedelta = timedelta(0)

    def bounds(self, times: pl.Series) -> tuple[pl.Series, pl.Series]:
        days = times // _DAY
        known = (days >= _FIRST) & (days <= _LAST)
        edges = np.unique(np.array([edge for day in days.filter(known).unique() for edge in _edges(self, day)], dtype=np.int64))
        if not len(edges):
            nothing = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(times))
            return nothing, nothing
        places = np.searchsorted(edges, times.fill_null(0).to_numpy(), side="right")
        start, stop = pl.Series(edges[places.clip(1) - 1]), pl.Series(edges[places.clip(0, len(edges) - 1)])
        # There is no window whose beginning or end would be outside of the calendar's years.
        known = known & pl.Series((places > 0) & (places < len(edges)))
        inside = pl.select(pl.when(known).then(start).alias("start"), pl.when(known).then(stop).alias("stop"))
        return inside.get_column("start"), inside.get_column("stop")


@lru_cache(maxsize=4096)
def _edges(layout: CalendarLayout, day: int) -> tuple[int, ...]:
    """The window starts in and around a day of UTC: from the last at or before it to the first after it, in microseconds."""
    zone, around = ZoneInfo(layout.zone), _EPOCH + timedelta(days=day)
    if layout.unit == "hour":
        return tuple(sorted({edge * 1_000_000 for edge in _hours(zone, day, layout.offset)}))
    found = (_begin(begin, layout.offset, zone) for begin in _dates(layout, around))
    return tuple(sorted({edge for edge in found if edge is not None}))


def _begin(day: date, offset: timedelta, zone: ZoneInfo) -> int | None:
    """The start of a window, in microseconds; None if it is outside of the calendar's years."""
    try:
        wall = datetime.combine(day, datetime.min.time()) + offset
        return _shown(wall, zone) * 1_000_000 + wall.microsecond
    except OverflowError:
        return None


def _dates(layout: CalendarLayout, around: date) -> Iterator[date]:
    if layout.unit == "month":
        month = (around.year * 12 + around.month - 1) // layout.count * layout.count
        months = (month + step * layout.count for step in range(-2, 3))
        return (date(number // 12, number % 12 + 1, 1) for number in months if MINYEAR <= number // 12 <= MAXYEAR)
    length = 7 if layout.unit == "week" else 1
    first = around - timedelta(days=around.weekday() if layout.unit == "week" else 0)
    days = (first.toordinal() + length * step for step in range(-2, 4))
    return (date.fromordinal(day) for day in days if date.min.toordinal() <= day <= date.max.toordinal())


def _shown(wall: datetime, zone: ZoneInfo) -> int:
    """The second at which the clocks of a zone first show a time, or skip it."""
    early, late = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early <= late:
        return int(early.timestamp())
    # The clocks skip it: one reading of the time is before the change, the other after it.
    return _change(int(late.timestamp()), int(early.timestamp()), zone)


def _hours(zone: ZoneInfo, day: int, offset: timedelta) -> Iterator[int]:
    shift = offset // timedelta(seconds=1)
    for hour in range(day * 24 - 2, day * 24 + 27):
        begin, end = hour * _HOUR, (hour + 1) * _HOUR
        before, after = _ahead(begin, zone), _ahead(end, zone)
        if (before - after) % _HOUR == 0:
            yield begin + (shift - before) % _HOUR
            continue
        change = _change(begin, end, zone)
        yield change
        yield from (edge for edge in [begin + (shift - before) % _HOUR] if edge < change)
        yield from (edge for edge in [change + (shift - after - change) % _HOUR] if edge < end)


def _change(low: int, high: int, zone: ZoneInfo) -> int:
    """The second between two others at which the clocks of a zone change."""
    before = _ahead(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _ahead(middle, zone) == before else (low, middle)
    return high


def _ahead(second: int, zone: ZoneInfo) -> int:
    """The offset of a zone's clocks from UTC at a moment, in seconds."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return (moment.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(seconds=1)
