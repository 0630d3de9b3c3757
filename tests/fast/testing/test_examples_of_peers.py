"""Worked examples from the documents of Kafka Streams, Beam and Flink: the same numbers here, and where they differ, why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, perfect, session, sliding, tumbling
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(milliseconds: int) -> datetime:
    return NOON + timedelta(milliseconds=milliseconds)


def after(moment: datetime) -> int:
    return round((moment - NOON) / timedelta(milliseconds=1))


def records(app: Declaration, watermark: Any) -> Stream:
    return app.stream("records", "key string, value int, at timestamp", key="key", time="at", watermark=watermark)


def send(driver: TestDriver, *sent: tuple[str, int, int]) -> None:
    driver.send("records", [{"key": key, "value": value, "at": at(time)} for key, value, time in sent])


def test_sliding_windows_of_kafka_streams_that_end_with_a_record() -> None:
    """Those that Kafka Streams adds when a record drops out, [8001;13001] and [9201;14201], hold nothing that these do not."""
    app = Declaration("kafka")
    app.view("windows", records(app, perfect()).window(sliding("5 seconds"), by="key").agg(values="collect_list(value)"))
    with TestDriver(app) as driver:
        send(driver, ("A", 1, 8000), ("A", 2, 9200), ("A", 3, 12400))
        driver.end()
        found = {(after(row["window_start"]), after(row["window_end"])): row["values"] for row in driver.rows("windows")}
    assert found == {(3000, 8000): [1], (4200, 9200): [1, 2], (7400, 12400): [1, 2, 3]}


def test_a_record_out_of_order_is_in_the_sliding_windows_that_are_not_closed() -> None:
    """In Kafka Streams a record expires when the window that begins right after it is closed, not when its own is."""
    app = Declaration("kafka")
    app.view("windows", records(app, perfect()).window(sliding("5 seconds"), by="key").agg(values="collect_list(value)"))
    with TestDriver(app) as driver:
        send(driver, ("A", 1, 8000), ("B", 9, 10000))
        send(driver, ("A", 2, 6000))
        send(driver, ("A", 3, 10500))
        driver.end()
        found = {after(row["window_end"]): row["values"] for row in driver.rows("windows") if row["key"] == "A"}
        assert driver.late("records") == []
    assert found == {8000: [1], 10500: [2, 1, 3]}


def test_sessions_of_kafka_streams_that_a_late_record_merges() -> None:
    """Two sessions with a gap of five minutes; a record out of order between them makes one of both, and replaces them."""
    app = Declaration("kafka")
    sessions = records(app, perfect()).window(session("5 minutes"), by="key").agg(n="count(*)").emit(until="1 hour")
    app.view("sessions", sessions)
    minute = 60_000
    with TestDriver(app) as driver:
        send(driver, ("blue", 1, 0), ("blue", 1, 6 * minute), ("green", 1, 6 * minute), ("green", 1, 20 * minute))
        seen = [(row["key"], after(row["window_start"]) // minute, row["n"]) for row in driver.rows("sessions")]
        assert seen == [("blue", 0, 1), ("blue", 6, 1), ("green", 6, 1)]
        send(driver, ("blue", 1, 3 * minute))
        merged = [
            (row["key"], after(row["window_start"]) // minute, after(row["window_end"]) // minute, row["n"])
            for row in driver.rows("sessions")
        ]
        assert merged == [("blue", 0, 11, 3), ("green", 6, 11, 1)]


@pytest.mark.parametrize(
    ("mode", "panes"),
    [
        ("accumulating", [[5, 8, 3], [5, 8, 3, 15, 19, 23], [5, 8, 3, 15, 19, 23, 9, 13, 10]]),
        ("discarding", [[5, 8, 3], [15, 19, 23], [9, 13, 10]]),
    ],
)
def test_accumulation_modes_of_beam(mode: str, panes: list[list[int]]) -> None:
    """A trigger that fires after three elements. On time Beam fires as well, with nothing new, by its default FIRE_ALWAYS."""
    app = Declaration("beam")
    windows = records(app, bounded("1 minute")).window(tumbling("10 minutes"), by="key").agg(values="collect_list(value)")
    app.view("panes", windows.emit(every=3, mode=mode), key=["key", "window_start", "revision"])
    with TestDriver(app) as driver:
        values = [5, 8, 3, 15, 19, 23, 9, 13, 10]
        for first in (0, 3, 6):
            send(driver, *(("k", value, 1000 * (first + place)) for place, value in enumerate(values[first : first + 3])))
        shown = [row["values"] for row in driver.rows("panes")]
        assert shown == panes
        driver.end()
        *_, last = driver.rows("panes")
    assert (last["pane"], last["values"]) == ("on-time", [] if mode == "discarding" else values)


def test_idle_state_of_flink_is_forgotten_and_begins_anew() -> None:
    """In Flink the last result of a forgotten key stays with its readers; here it is retracted."""
    app = Declaration("flink")
    app.view("counts", records(app, perfect()).group("key", ttl="1 hour").agg(n="count(*)"))
    hour = 3_600_000
    with TestDriver(app) as driver:
        send(driver, ("a", 1, 0), ("a", 1, hour // 2))
        send(driver, ("b", 1, 2 * hour))
        assert [(row["key"], row["n"]) for row in driver.rows("counts")] == [("b", 1)]
        send(driver, ("a", 1, 2 * hour))
        assert [(row["key"], row["n"]) for row in driver.rows("counts")] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [(1, "L1", None, 0), (2, "L2", None, 5)]),
        ("right", [(2, None, "R2", 0), (4, None, "R4", 5)]),
        ("full", [(1, "L1", None, 0), (2, "L2", None, 5), (2, None, "R2", 0), (4, None, "R4", 5)]),
    ],
)
def test_windows_of_flink_that_are_joined_with_windows(how: str, alone: list[tuple[int, str | None, str | None, int]]) -> None:
    """Rows of one number meet only in the same five minutes: L2 and R2 do not."""
    app = Declaration("flink")
    sides = []
    for name in ("left", "right"):
        rows = app.stream(name, "num int, id string, at timestamp", time="at", watermark=bounded("5 minutes", idle="1 hour"))
        sides.append(rows.window(tumbling("5 minutes"), by=["num", "id"]).agg(n="count(*)").select("num, id, window_start"))
    left, right = sides
    app.sink(left.join_within(right, on=["num", "window_start"], within="0 seconds", how=how), LogTopic("joined"), name="joined")
    minute = 60_000
    with TestDriver(app) as driver:
        for name, sent in (("left", [(1, "L1", 2), (2, "L2", 6), (3, "L3", 3)]), ("right", [(2, "R2", 1), (3, "R3", 4), (4, "R4", 5)])):
            driver.send(name, [{"num": num, "id": key, "at": at(time * minute)} for num, key, time in sent])
        driver.end()
        found = [(row["num"], row["id"], row["id_right"], after(row["window_start"]) // minute) for row in driver.rows("joined")]
    assert sorted(found, key=str) == sorted([(3, "L3", "R3", 0), *alone], key=str)


def test_the_top_of_windows_of_flink() -> None:
    """The three suppliers that sold most in ten minutes."""
    app = Declaration("flink")
    bids = app.stream("bids", "price decimal(10, 2), supplier int, at timestamp", time="at", watermark=perfect())
    sales = bids.window(tumbling("10 minutes"), by="supplier").agg(price="sum(price)", cnt="count(*)")
    app.view("top", sales.top(3, by="price", per="window", rank="place"))
    sent = [(5, 4, 1), (6, 4, 2), (7, 2, 1), (8, 2, 3), (9, 5, 4), (11, 2, 3), (13, 1, 1), (15, 3, 2), (17, 6, 5)]
    with TestDriver(app) as driver:
        for minute, price, supplier in sent:
            driver.send("bids", [{"price": price, "supplier": supplier, "at": at(minute * 60_000)}])
        driver.end()
        found = [
            (after(row["window_start"]) // 60_000, row["place"], row["supplier"], row["price"], row["cnt"]) for row in driver.rows("top")
        ]
    assert sorted(found) == [(0, 1, 1, 6, 2), (0, 2, 4, 5, 1), (0, 3, 2, 4, 1), (10, 1, 5, 6, 1), (10, 2, 2, 3, 1), (10, 3, 3, 2, 1)]
