"""The first and the last years of the calendar: one record with an odd time never stops a job, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration

YEARS = ["0001-06-01", "0002-01-01", "0002-01-02", "0003-05-05", "0004-12-31", "0040-01-01", "9960-05-05", "9996-12-31", "9997-12-31",
         "9998-01-01", "9999-12-31T23:59:59.999999Z"]  # fmt: skip
WINDOWS = {
    "a year": hr.calendar("1 year", zone="UTC"),
    "a year of an island": hr.calendar("1 year", zone="Pacific/Kiritimati", offset="20 days"),
    "40 years": hr.calendar("40 years", zone="Europe/Berlin"),
    "a month": hr.calendar("1 month", zone="America/New_York"),
    "a week": hr.calendar("1 week", zone="Asia/Tokyo"),
    "a day": hr.calendar("1 day", zone="Asia/Tokyo"),
    "an hour": hr.calendar("1 hour", zone="Asia/Kolkata"),
    "tumbling": hr.tumbling("3000 days"),
    "hopping": hr.hopping("3000 days", every="1000 days"),
    "session": hr.session("3000 days"),
    "sliding": hr.sliding("3000 days"),
    "counted": hr.count_window(1),
    "own": hr.custom(lambda times: (times.astype("datetime64[Y]") - 5, times.astype("datetime64[Y]") + 5)),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("at", YEARS)
def test_a_record_is_in_a_window_or_a_dead_letter_whatever_its_year(window: str, at: str) -> None:
    app = Declaration("edges")
    events = app.stream("events", "k string, at timestamp", time="at", watermark=hr.bounded("0s"))
    app.view("windows", events.window(WINDOWS[window], by="k").agg(n="count(*)"))
    with hr.TestDriver(app) as driver:
        driver.send("events", [{"k": "odd", "at": at}])
        driver.end()
        held: list[dict[str, Any]] = driver.rows("windows")
        letters = [row["reason"] for row in driver.dead_letters("events")]
        assert bool(held) != bool(letters)
        assert all(row["n"] == 1 and row.get("window_start", 0) <= row.get("window_end", 0) for row in held if "window_start" in row)


def test_a_good_record_is_counted_next_to_one_of_the_year_2() -> None:
    app = Declaration("edges")
    events = app.stream("events", "k string, at timestamp", time="at", watermark=hr.bounded("0s"))
    app.view("years", events.window(hr.calendar("1 year", zone="UTC")).agg(n="count(*)"))
    app.view("long", events.window(hr.tumbling("3000 days")).agg(n="count(*)"))
    with hr.TestDriver(app) as driver:
        driver.send("events", [{"at": "0002-03-01"}, {"at": "2026-01-01"}])
        driver.end()
        assert [(row["window_start"].year, row["n"]) for row in driver.rows("years")] == [(2, 1), (2026, 1)]
        assert [row["n"] for row in driver.rows("long")] == [1]
        assert [(row["step"], row["reason"]) for row in driver.dead_letters("events")] == [
            ("events.window#2", "its window would reach beyond the years 1 to 9999")
        ]
