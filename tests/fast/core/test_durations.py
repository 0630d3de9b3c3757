"""Durations are read once, exactly, or refused with an example of what to write."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.durations import LONGEST, duration, microseconds, spelled
from headrace.core.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 seconds", timedelta(seconds=30)),
        ("30s", timedelta(seconds=30)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("  2 W ", timedelta(weeks=2)),
        ("1.5 days", timedelta(hours=36)),
        ("500ms", timedelta(milliseconds=500)),
        ("5m", timedelta(minutes=5)),
        ("0s", timedelta(0)),
    ],
)
def test_a_duration_is_read_as_people_write_it(text, expected):
    assert duration(text) == expected


def test_a_timedelta_is_already_a_duration():
    assert duration(timedelta(seconds=3)) == timedelta(seconds=3)


@pytest.mark.parametrize("wrong", ["", "  ", "30", "seconds", "-5s", "5 parsecs", "1h and 5m", "1e3s", "٣s", "5 s 6", None, 5])
def test_what_is_not_a_duration_is_refused_with_an_example(wrong):
    with pytest.raises(SettingsError) as refusal:
        duration(wrong)
    assert "is not a duration" in refusal.value.fact
    assert "30 seconds" in refusal.value.hint


@pytest.mark.parametrize("long", ["99999999999 days", "200000000 days", timedelta.max, timedelta.min])
def test_a_duration_longer_than_moments_can_be_apart_is_refused(long):
    with pytest.raises(SettingsError, match="longer than"):
        duration(long)


def test_fractions_do_not_round():
    assert microseconds("100000000.000001s") == 100_000_000_000_001


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_a_spelled_duration_reads_back_as_itself(value):
    assert duration(spelled(value)) == value


def test_a_negative_duration_is_spelled_with_its_sign():
    assert spelled(timedelta(seconds=-90)) == "-1 minute 30 seconds"
