"""Windows of a calendar against the clocks of places that change theirs, minute by minute."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from headrace.operators.contract import START, STOP
from headrace.operators.windows.calendar import CalendarLayout
from headrace.operators.windows.layouts import CELL

MINUTE = 60_000_000
# A spring and an autumn, clocks that skip midnight, that move by half an hour, that go back over midnight, and a day that was left out.
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
    ("America/St_Johns", datetime(2010, 11, 7, 2, 31, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 1, 1, tzinfo=UTC)),
]


def walls(zone: str, around: datetime, days: int, every: int = 1) -> list[tuple[int, datetime]]:
    """What the clocks of a place show, at even steps of minutes."""
    there, first = ZoneInfo(zone), around - timedelta(days=days)
    moments = [first + timedelta(minutes=minute) for minute in range(0, days * 2 * 1440, every)]
    return [(round(moment.timestamp()) * 1_000_000, moment.astimezone(there)) for moment in moments]


def edges(labels: list[tuple[int, date]]) -> list[int]:
    """The minutes at which a label is shown that is later than all before it."""
    found, latest = [], labels[0][1]
    for time, label in labels:
        if label > latest:
            found.append(time)
            latest = label
    return found


def compare(layout: CalendarLayout, wanted: list[int], seed: int) -> None:
    chance = random.Random(seed)
    moments = [time for edge in wanted[:-1] for time in (edge, edge + 1, edge + chance.randrange(MINUTE)) if time < wanted[-1]]
    moments += [time - 1 for time in wanted[1:]]
    start, stop = layout.bounds(pl.Series(moments, dtype=pl.Int64))
    for time, low, high in zip(moments, start, stop, strict=True):
        assert low == max(edge for edge in wanted if edge <= time), datetime.fromtimestamp(time / 1e6, UTC)
        assert high == min(edge for edge in wanted if edge > time), datetime.fromtimestamp(time / 1e6, UTC)


@pytest.mark.parametrize(("zone", "around"), CHANGES)
def test_days_and_hours_are_those_that_the_clocks_show(zone: str, around: datetime) -> None:
    shown = walls(zone, around, 3)
    compare(CalendarLayout("day", 1, zone), edges([(time, wall.date()) for time, wall in shown]), 1)
    six = timedelta(hours=6)
    compare(CalendarLayout("day", 1, zone, six), edges([(time, (wall.replace(tzinfo=None) - six).date()) for time, wall in shown]), 2)
    hours = []
    for (_, before), (time, wall) in pairwise(shown):
        moved = (wall.utcoffset() or timedelta(0)) - (before.utcoffset() or timedelta(0))
        if (wall.minute == 0 and moved == timedelta(0)) or moved % timedelta(hours=1) or (moved and wall.minute == 0):
            hours.append(time)
    compare(CalendarLayout("hour", 1, zone), hours, 3)


@pytest.mark.parametrize(("zone", "around"), CHANGES[:6])
def test_weeks_and_months_begin_at_a_midnight_of_the_place(zone: str, around: datetime) -> None:
    shown = walls(zone, around, 40, every=30)
    mondays = [(time, wall.date() - timedelta(days=wall.weekday())) for time, wall in shown]
    compare(CalendarLayout("week", 1, zone), edges(mondays), 1)
    compare(CalendarLayout("month", 1, zone), edges([(time, wall.date().replace(day=1)) for time, wall in shown]), 2)


def test_a_day_in_spring_has_23_hours_and_one_in_autumn_25() -> None:
    layout = CalendarLayout("day", 1, "Europe/Berlin")
    noon = [datetime(2026, month, day, 12, tzinfo=UTC) for month, day in ((3, 28), (3, 29), (10, 25))]
    start, stop = layout.bounds(pl.Series([round(moment.timestamp() * 1e6) for moment in noon]))
    assert ((stop - start) // (60 * MINUTE)).to_list() == [24, 23, 25]


def test_quarters_and_years() -> None:
    moments = pl.Series([round(datetime(2026, 5, 5, tzinfo=UTC).timestamp() * 1e6)])
    for months, low, high in ((3, (2026, 4), (2026, 7)), (12, (2026, 1), (2027, 1))):
        start, stop = CalendarLayout("month", months, "UTC").bounds(moments)
        assert [start.item(), stop.item()] == [round(datetime(*bound, 1, tzinfo=UTC).timestamp() * 1e6) for bound in (low, high)]


def test_times_far_from_each_other_and_beyond_the_calendar_do_no_harm() -> None:
    layout = CalendarLayout("month", 1, "America/New_York")
    times = pl.Series([0, 2**61, -(2**61), 10**15])
    start, stop = layout.bounds(times)
    assert start.is_null().to_list() == stop.is_null().to_list() == [False, True, True, False]
    spread = layout.spread(pl.DataFrame({CELL: start.drop_nulls()}))
    assert spread.select(START, STOP).rows() == list(zip(start.drop_nulls(), stop.drop_nulls(), strict=True))
