"""The fate of an event time in `headrace explain --time` is what happens to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.clock import to_microseconds
from headrace.engine.times.event_time_trace import Timing, timings
from headrace.ops.timing import samples

EVENT = datetime(2026, 3, 29, 0, 59, 30, 5, tzinfo=UTC)
TICK = timedelta(microseconds=1)
EMITS: list[dict[str, Any]] = [{}, {"until": "40 minutes"}]


def declared(window: Any, emit: dict[str, Any]) -> Declaration:
    app = Declaration("explained")
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.bounded("7 seconds"))
    app.view("results", events.window(window, by="name").agg(n="count(*)").emit(**emit))
    return app


def told(app: Declaration) -> list[Timing]:
    return list(timings(app.plan(), "events", to_microseconds(EVENT)))


def driven(app: Declaration, *events: tuple[str, datetime]) -> hr.TestDriver:
    driver = hr.TestDriver(app, shards=1)
    for name, at in events:
        driver.send("events", [{"name": name, "at": at}])
    return driver


@pytest.mark.parametrize("emit", EMITS, ids=["on time", "corrected"])
@pytest.mark.parametrize(
    "window",
    [
        hr.tumbling("1 hour", offset="10 minutes"), hr.hopping("1 hour", every="20 minutes"), hr.session("10 minutes"),
        hr.calendar("1 day", zone="Europe/Berlin"), hr.sliding("5 minutes"),
    ],
    ids=str,
)  # fmt: skip
def test_windows_fire_and_events_are_late_exactly_when_it_is_said(window: Any, emit: dict[str, Any]) -> None:
    app = declared(window, emit)
    windows = told(app)
    for fired, timing in enumerate(windows):
        assert timing.closed_by is not None
        for by, count in ((timing.closed_by - TICK, fired), (timing.closed_by, fired + 1)):
            rows = [row for row in driven(app, ("it", EVENT), ("other", by)).rows("results") if row["name"] == "it"]
            assert len(rows) == count
        assert (rows[-1]["window_start"], rows[-1]["window_end"]) == (timing.window_start, timing.window_end)
    late_by = windows[0].late_by
    assert late_by is not None
    assert not driven(app, ("other", late_by - TICK), ("it", EVENT)).late("events")
    assert len(driven(app, ("other", late_by), ("it", EVENT)).late("events")) == 1


@pytest.mark.parametrize(
    ("step", "waits"),
    [
        (lambda events: events.dedup("name", ttl="1 hour"), False),
        (lambda events: events.with_previous("at", by="name", ttl="1 hour"), True),
        (lambda events: events.process(lambda event: event, by="name", ttl="1 hour"), True),
        (lambda events: events.process(lambda event: event, by="name", ttl="1 hour", order="arrival"), False),
    ],
    ids=["dedup", "previous", "process", "process as they come"],
)
def test_steps_by_key_have_turns_and_late_events_exactly_when_it_is_said(step: Any, waits: bool) -> None:
    app = Declaration("explained")
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.bounded("7 seconds"))
    app.view("results", step(events), key="name")
    (timing,) = told(app)
    assert (timing.fires_at is not None, timing.windows) == (waits, 0)
    assert timing.turn
    for by, out in (((timing.closed_by or EVENT) - TICK, not waits), (timing.closed_by or EVENT, True)):
        assert ("it" in [row["name"] for row in driven(app, ("it", EVENT), ("other", by)).rows("results")]) is out
    assert timing.late_by is not None
    assert not driven(app, ("other", timing.late_by - TICK), ("it", EVENT)).late("events")
    assert len(driven(app, ("other", timing.late_by), ("it", EVENT)).late("events")) == 1


def test_for_which_step_an_event_is_late_first_decides_for_those_behind_it() -> None:
    app = Declaration("explained")
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.perfect())
    app.view("hours", events.dedup("name", ttl="1 hour").window(hr.tumbling("1 hour"), by="name").agg(n="count(*)"))
    dedup, hour = told(app)
    assert (dedup.late_at, hour.late_at) == (EVENT + TICK, None)


def test_a_step_that_has_no_window_for_an_event_says_so() -> None:
    (nothing,) = told(declared(hr.custom(lambda times: (times, times)), {}))
    assert (nothing.windows, nothing.turn) == (0, "no window holds it: a dead letter")
    with pytest.warns(hr.PlanWarning):
        (clocked,) = told(declared(hr.processing_time("1 minute"), {}))
    assert (clocked.windows, clocked.turn) == (0, "the wall clock decides, not its time")


def test_of_many_windows_the_first_and_the_last_are_told() -> None:
    first, last = told(declared(hr.hopping("1 day", every="1 minute"), {}))
    assert first.windows == last.windows == 1440
    assert (first.window_end, last.window_start) == (
        EVENT.replace(minute=0, second=0, microsecond=0, hour=1),
        EVENT.replace(second=0, microsecond=0),
    )


def test_a_result_is_followed_into_the_windows_behind_it() -> None:
    app = Declaration("explained")
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.perfect())
    hours = events.where("name != ''").window(hr.tumbling("1 hour"), by="name").agg(n="count(*)")
    app.view("days", hours.window(hr.calendar("1 day", zone="Europe/Berlin")).agg(n="sum(n)"))
    hour, day = told(app)
    assert (hour.step, day.step) == ("events.where.window", "events.where.window.window")
    assert day.window_end == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert (day.late_at, hour.late_at) == (None, hour.window_end)


def test_samples_are_the_last_records_or_made_up(tmp_path: Path) -> None:
    app = hr.App("explained", home=tmp_path)
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.bounded("7 seconds"))
    app.view("ever", events.window(hr.global_(), by="name").agg(n="count(*)").emit(early="5 seconds"))
    assert [sample.made_up for sample in samples(app.plan(), app.log)] == [True, True]
    with app.log.producer() as producer:
        producer.send("events", {"name": "it", "at": EVENT})
    (sample,) = samples(app.plan(), app.log)
    assert str(sample) == (
        "events, event time 2026-03-29 00:59:30.000005 UTC (of one of its last records), watermark bounded 7 seconds\n"
        "  events.window: global\n"
        "    one window, which fires when the input ends\n"
        "    early panes each time the watermark passes a multiple of 5 seconds"
    )


def test_a_turn_is_told_in_words(tmp_path: Path) -> None:
    app = hr.App("turns", home=tmp_path)
    events = app.stream("events", "name string, at timestamp", time="at", watermark=hr.bounded("7 seconds"))
    app.view("last", events.with_previous("at", by="name", ttl="1 day"), key="name")
    assert str(next(samples(app.plan(), app.log))) == (
        "events, event time 2026-01-01 12:00:00 UTC (made up), watermark bounded 7 seconds\n"
        "  events.previous: with at of the previous record by name\n"
        "    has its turn at watermark 12:00:00.000001 (record of 12:00:07.000001)\n"
        "    late from watermark 12:00:00.000001 (record of 12:00:07.000001) on: an event of this time then goes to events.late"
    )


def test_what_a_loss_budget_may_learn_is_said_to_be_at_the_latest(tmp_path: Path) -> None:
    app = hr.App("learning", home=tmp_path)
    events = app.stream("events", "at timestamp", time="at", watermark=hr.loss_budget(0.01, max="5 minutes"))
    app.view("hours", events.window(hr.tumbling("1 hour")).agg(n="count(*)"))
    first = next(samples(app.plan(), app.log))
    assert "fires at watermark 13:00:00 (record of 13:05:00 at the latest)" in str(first)
