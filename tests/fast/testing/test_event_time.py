"""Event time as the world has it: numbers with a unit, nested fields and text, made a time by an expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MILLIS = int(NOON.timestamp() * 1000)


def app(schema: str, time: str, watermark: Any = None) -> Declaration:
    declared = Declaration("clicks")
    clicks = declared.stream("clicks", schema, time=time, watermark=watermark or hr.bounded("10 seconds"))
    declared.view("per_minute", clicks.window(hr.tumbling("1 minute"), by="url").agg(clicks="count(*)"))
    return declared


def counted(driver: hr.TestDriver) -> list[tuple[str, int, int]]:
    return [(row["url"], (row["window_start"] - NOON) // timedelta(minutes=1), row["clicks"]) for row in driver.rows("per_minute")]


def test_windows_and_watermark_go_by_a_time_that_is_computed() -> None:
    with hr.TestDriver(app("url string, ts bigint", "timestamp_millis(ts)")) as driver:
        driver.send(
            "clicks", [{"url": "/", "ts": MILLIS + 1_000}, {"url": "/", "ts": MILLIS + 59_999}, {"url": "/", "ts": MILLIS + 75_500}]
        )
        assert driver.watermark == NOON + timedelta(seconds=65.5)
        assert counted(driver) == [("/", 0, 2)]
        driver.send("clicks", [{"url": "/", "ts": MILLIS + 2_000}])
        assert [(row["ts"], row["reason"]) for row in driver.late("clicks")] == [(MILLIS + 2_000, "every window of the record is closed")]


def test_a_nested_field_is_a_time() -> None:
    with hr.TestDriver(app("url string, payload struct<at:timestamp,by:string>", "payload.at")) as driver:
        driver.send("clicks", [{"url": "/", "payload": {"at": NOON, "by": "ada"}}, {"url": "/", "payload": None}])
        driver.end()
        assert counted(driver) == [("/", 0, 1)]
        assert [(row["offset"], row["reason"]) for row in driver.dead_letters("clicks")] == [(1, "no event time in payload.at")]


def test_a_record_whose_time_cannot_be_computed_is_a_dead_letter_with_the_reason() -> None:
    with hr.TestDriver(app("url string, at string", "to_timestamp(at)")) as driver:
        driver.send("clicks", [{"url": "/", "at": text} for text in ("2026-01-01 12:00:01", "yesterday", None, "2026-01-01T12:01:30Z")])
        assert counted(driver) == [("/", 0, 1)]
        letters = [(row["step"], row["offset"], row["reason"]) for row in driver.dead_letters("clicks")]
        assert letters[0][:2] == ("clicks", 1)
        assert letters[0][2].startswith("no event time in to_timestamp(at): ")
        assert letters[1:] == [("clicks", 2, "no event time in to_timestamp(at)")]
        (source, *_) = driver.accounting()
        assert (source["in"], source["out"], source["dead_letter"]) == (4, 2, 2)


def test_numbers_beyond_every_calendar_are_dead_letters_and_close_no_window() -> None:
    with hr.TestDriver(app("url string, ts bigint", "timestamp_seconds(ts)")) as driver:
        driver.send("clicks", [{"url": "/", "ts": seconds} for seconds in (MILLIS // 1000, 2**62, -(2**62), MILLIS)])
        assert len(driver.dead_letters("clicks")) == 3
        assert driver.watermark == NOON - timedelta(seconds=10)


def test_a_loss_budget_learns_from_a_time_that_is_computed() -> None:
    watermark = hr.loss_budget(0.1, max="5 minutes")
    with hr.TestDriver(app("url string, ts bigint", "timestamp_millis(ts)", watermark)) as driver:
        late = [0, -2, 5, 4, 9, 10, 8, 11, -30, 12]
        driver.send("clicks", [{"url": "/", "ts": MILLIS + 1_000 * second} for second in late])
        assert driver.bounds("clicks") == {0: timedelta(seconds=2)}


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 1_000_000)])
def test_a_timestamp_with_a_unit_takes_numbers_of_it_and_iso_text(unit: str, factor: int) -> None:
    start = int(NOON.timestamp())
    with hr.TestDriver(app(f"url string, at timestamp({unit})", "at")) as driver:
        rows = [{"url": "/", "at": start * factor}, {"url": "/", "at": "2026-01-01T12:00:01Z"}, {"url": "/", "at": NOON}]
        driver.send("clicks", rows)
        driver.send("clicks", pa.table({"url": ["/"], "at": [(start + 75) * factor]}))
        assert counted(driver) == [("/", 0, 3)]
        assert driver.watermark == NOON + timedelta(seconds=65)


@pytest.mark.parametrize("rows", [[{"url": "/"}, {"url": "/", "at": 1_767_268_800}], pa.table({"at": [1_767_268_800]})])
def test_a_number_without_a_unit_is_no_time(rows: Any) -> None:
    with hr.TestDriver(app("url string, at timestamp", "at")) as driver, pytest.raises(hr.SchemaError) as refused:
        driver.send("clicks", rows)
    assert "1767268800 is a number without a unit: declare the column as timestamp(s), timestamp(ms) or timestamp(us)" in str(refused.value)
    assert isinstance(rows, pa.Table) or "column 'at' of record 2 of 2: " in str(refused.value)


def test_a_column_whose_name_reads_like_an_expression_is_a_column() -> None:
    with hr.TestDriver(app("url string, `event-time` timestamp", "event-time")) as driver:
        driver.send("clicks", [{"url": "/", "event-time": NOON}])
        driver.end()
        assert counted(driver) == [("/", 0, 1)]


@pytest.mark.parametrize(
    ("schema", "time", "fact", "hint"),
    [
        ("url string, ts bigint", "ts", "time 'ts' of stream 'clicks' is bigint, not a timestamp", "timestamp_millis(ts)"),
        ("url string, ts string", "ts", "is string, not a timestamp", "to_timestamp(ts)"),
        ("url string, day date", "day", "is date, not a timestamp", "cast(day as timestamp)"),
        ("url string, p struct<at:timestamp>", "p", "is struct<at:timestamp>, not a timestamp", "p.at"),
        ("url string, at timestamp", "att", "no column 'att'", "at"),
        ("url string, at timestamp", "now()", "is another one each time it is read", ""),
        ("url string, at timestamp", "timestamp'2026-01-01 00:00:00'", "reads no column", "name one"),
        ("url string, at string", "to_timestamp(at, 'yyyy')", "is evaluated by Spark", "timestamp_millis"),
        ("url string, at timestamp", "max(at)", "combines many rows", ""),
        ("url string, at timestamp", "", "", ""),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_when_declared(schema: str, time: str, fact: str, hint: str) -> None:
    with pytest.raises(PlanError) as refused:
        app(schema, time)
    assert fact in refused.value.fact
    assert hint in str(refused.value)
    assert refused.value.where is not None
    assert "test_event_time.py" in refused.value.where


def test_a_time_that_is_no_text_is_refused() -> None:
    with pytest.raises(PlanError, match="time=5 of stream 'clicks' is neither a column nor an expression"):
        app("url string, at timestamp", 5)  # type: ignore[arg-type]
