"""Late records and dead letters as streams of an app."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, session, tumbling
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver


def readings(app: Declaration, **options: Any) -> Stream:
    return app.stream(
        "readings", "device string, value int, at timestamp", key="device", time="at", watermark=bounded("0s", idle="1 minute"), **options
    )


def reading(clock: str, value: int | None = 1, device: str = "d") -> dict[str, Any]:
    return {"device": device, "value": value, "at": f"2026-01-01T{clock}Z"}


def per_minute(stream: Stream) -> Stream:
    return stream.window(tumbling("1 minute"), by="device").agg(readings="count(*)")


def test_late_records_are_a_stream_in_the_epoch_in_which_they_are_found() -> None:
    app = Declaration("late")
    stream = readings(app)
    app.view("per_minute", per_minute(stream))
    late = stream.late()
    app.sink(late.select("device", "value", "step", "reason", "watermark", "window_start"), LogTopic("alerts"), name="alerts")
    app.view("late_per_minute", late.window(tumbling("1 minute"), by="step").agg(late="count(*)"))
    with TestDriver(app) as driver:
        driver.send("readings", [reading("12:05:10")])
        driver.send("readings", [reading("12:00:00", 7), reading("12:05:20")])
        (alert,) = driver.rows("alerts")
        assert (alert["device"], alert["value"], alert["step"]) == ("d", 7, "readings.window")
        assert (alert["reason"], f"{alert['watermark']:%H:%M:%S}") == ("every window of the record is closed", "12:05:10")
        driver.restart()
        driver.send("readings", [reading("12:00:01"), reading("12:06:00")])
        # Both were judged in the minute of the watermark then; no late record is late for its own windows.
        assert [(f"{row['window_start']:%H:%M}", row["late"]) for row in driver.rows("late_per_minute")] == [("12:05", 2)]
        assert len(driver.late("readings")) == 2
        counts = {row["step"]: row for row in driver.accounting()}
        assert (counts["readings.late"]["in"], counts["readings.late.window"]["late"]) == (2, 0)


def test_dead_letters_of_every_step_are_a_stream_also_those_of_results() -> None:
    app = Declaration("dead")
    stream = readings(app)
    shares = stream.with_columns(share="100 / value").window(tumbling("1 minute"), by="device").agg(rate="100 / (count(*) - 1)")
    app.view("shares", shares)
    app.view("bad", stream.dead().group("step", ttl=None).agg(letters="count(*)", first="min(reason)"))
    with TestDriver(app) as driver:
        driver.send("readings", [reading("12:00:00", 0), {"device": "d", "value": 1}, reading("12:00:01"), reading("12:00:02", device="e")])
        driver.send("readings", [reading("12:00:03"), reading("12:02:00")])
        assert {row["step"]: row["letters"] for row in driver.rows("bad")} == {
            "readings": 1, "readings.with_columns": 1, "readings.with_columns.window.results": 1,
        }  # fmt: skip
        assert len(driver.dead_letters("readings")) == 3


def test_a_record_that_only_the_state_finds_late_comes_to_the_stream_too() -> None:
    app = Declaration("sessions")
    stream = readings(app)
    app.view("sessions", stream.window(session("10 seconds"), by="device").agg(readings="count(*)"))
    app.view("late", stream.late().group("device", ttl=None).agg(late="count(*)"))
    with TestDriver(app) as driver:
        driver.send("readings", [reading("12:00:00"), reading("12:05:00", device="e")])
        driver.send("readings", [reading("12:01:00")])
        assert [(row["device"], row["late"]) for row in driver.rows("late")] == [("d", 1)]


def test_what_is_bad_behind_dead_letters_goes_to_the_topic_and_not_round_in_circles() -> None:
    app = Declaration("loop")
    stream = readings(app)
    app.view("per_minute", per_minute(stream.where("100 / value > 0")))
    failing = stream.dead().with_columns(again="cast(reason as int)")
    app.view("again", failing.group("step", ttl=None).agg(letters="count(*)"))
    with TestDriver(app) as driver:
        driver.send("readings", [reading("12:00:00", 0), reading("12:00:01")])
        assert [row["step"] for row in driver.dead_letters("readings")] == ["readings.where", "readings.dead.with_columns"]
        counts = {row["step"]: row for row in driver.accounting()}
        assert (counts["readings.dead"]["in"], counts["readings.dead.with_columns"]["dead_letter"]) == (1, 1)


def test_silence_closes_the_windows_of_late_records_too() -> None:
    app = Declaration("silence")
    stream = readings(app)
    app.view("per_minute", per_minute(stream))
    app.view("late", stream.late().window(tumbling("1 hour"), by="device").agg(late="count(*)"))
    with TestDriver(app) as driver:
        driver.send("readings", [reading("12:05:00")])
        driver.send("readings", [reading("12:00:00")])
        driver.wait("2 minutes")
        assert [row["late"] for row in driver.rows("late")] == [1]


def test_only_streams_that_the_app_declares_have_late_records_and_dead_letters() -> None:
    app = Declaration("refused")
    stream = readings(app)
    for made in (stream.where("value > 1"), stream.late()):
        with pytest.raises(PlanError, match="not a stream that the app declares"):
            made.late()
        with pytest.raises(PlanError, match="not a stream that the app declares"):
            made.dead()
    with pytest.raises(PlanError, match="has no records"):
        app.stream("plain", "n int").late()
    with pytest.raises(PlanError, match="has no records"):
        Declaration("dropping").stream("r", "at timestamp", time="at", watermark=bounded("0s"), late="drop").late()


def test_a_plan_with_late_records_says_what_they_are() -> None:
    app = Declaration("explained")
    stream = readings(app)
    app.view("per_minute", per_minute(stream))
    app.sink(stream.late(), LogTopic("alerts"), name="alerts")
    assert "late records (device string" in str(explained(app.plan()))
