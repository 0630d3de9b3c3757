"""Time is an argument: the manual clock moves when told, the system clock by itself."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.clock import ManualClock, SystemClock, to_datetime, to_microseconds


def test_sleeping_on_the_manual_clock_moves_it_and_takes_no_time():
    clock = ManualClock(start=0)
    clock.sleep(3600)
    clock.advance(timedelta(microseconds=1))
    assert clock.now() == 3_600_000_001


def test_the_manual_clock_starts_with_the_year_2026():
    assert to_datetime(ManualClock().now()) == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_system_clock_is_the_time_of_day():
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert to_microseconds(before) - 1 <= now <= to_microseconds(datetime.now(UTC)) + 1


def test_a_moment_is_the_same_in_every_zone():
    summer = timezone(timedelta(hours=2))
    assert to_microseconds(datetime(2026, 6, 1, 12, tzinfo=summer)) == to_microseconds(datetime(2026, 6, 1, 10, tzinfo=UTC))


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_survives_the_way_to_microseconds_and_back(moment):
    assert to_datetime(to_microseconds(moment)) == moment
