"""Results of two steps, one behind the other, in the smallest cases that were once wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import count_window, global_, perfect, session, sliding, tumbling
from headrace.core.errors import PlanError
from headrace.testing.driver import TestDriver
from tests.support.oracles import AGGREGATES

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY = {name: text.replace("value", "length(v)").replace("tag", "v") for name, text in AGGREGATES.items()}


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def records(app: Declaration) -> Stream:
    return app.stream("records", "k string, v string, at timestamp", key="k", time="at", watermark=perfect())


def send(driver: TestDriver, *sent: tuple[str, int] | tuple[str, int, str]) -> None:
    for key, second, *value in sent:
        driver.send("records", [{"k": key, "v": value[0] if value else None, "at": at(second)}])


def shown(driver: TestDriver, view: str, *names: str) -> list[tuple[Any, ...]]:
    """Rows of a view; times as seconds since noon."""
    plain = [
        {name: round((v - NOON).total_seconds()) if isinstance(v, datetime) else v for name, v in row.items()} for row in driver.rows(view)
    ]
    return [tuple(row[name] for name in names) for row in plain]


@pytest.mark.parametrize(
    ("before", "ttl", "hint"),
    [
        (lambda stream: stream.to_table("k"), "20 s", "ttl=None"),
        (lambda stream: stream.to_table("k").where("v <> 'gone'").top(3, by="k"), "20 s", "ttl=None"),
        (lambda stream: stream.to_table("k", ttl="21 s"), "20 s", "at most 20 seconds"),
        (lambda stream: stream.window(tumbling("5 s"), by="k").agg(v="max(v)").emit(until="20 s"), "20 s", "a ttl above 20 seconds"),
        (lambda stream: stream.window(sliding("5 s"), by="k").agg(v="max(v)").emit(until="20 s"), "20 s", "a ttl above 20 seconds"),
        (lambda stream: stream.window(global_(), by="k").agg(v="max(v)").emit(every=1), "20 s", "ttl=None"),
    ],
    ids=["table", "top of a table", "table with a longer ttl", "windows", "sliding windows", "a global window"],
)
def test_a_group_that_could_forget_what_is_retracted_later_is_refused(before: Any, ttl: str, hint: str) -> None:
    app = Declaration("refused")
    app.view("groups", before(records(app)).group("v", ttl=ttl).agg(n="count(*)"))
    with pytest.raises(PlanError, match="may be retracted") as refused:
        app.plan()
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "before",
    [
        lambda stream: stream.to_table("k", ttl="20 s"),
        lambda stream: stream.window(tumbling("5 s"), by="k").agg(v="max(v)").emit(until="19 s"),
        lambda stream: stream.window(session("5 s"), by="k").agg(v="max(v)").emit(early="1 s", until="19 s"),
        lambda stream: stream.to_table("k").to_stream(),
        lambda stream: stream,
    ],
    ids=["table with this ttl", "windows corrected for less", "sessions corrected for less", "facts", "records"],
)
def test_a_group_that_hears_of_every_retraction_in_time_may_forget(before: Any) -> None:
    app = Declaration("taken")
    app.view("groups", before(records(app)).group("v", ttl="20 s").agg(n="count(*)"))
    app.plan()


def test_a_group_over_a_table_whose_rows_expire_counts_the_rows_that_there_are() -> None:
    app = Declaration("orders")
    app.view("states", records(app).to_table("k", ttl="20 s").group("v", ttl="20 s").agg(n="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("o1", 0, "new"))
        driver.advance(at(30))
        send(driver, ("o2", 31, "new"), ("o1", 32, "paid"))
        assert shown(driver, "states", "v", "n") == [("new", 1), ("paid", 1)]


def test_a_session_that_begins_when_a_closed_one_began_is_a_row_of_its_own() -> None:
    app = Declaration("visits")
    visits = records(app).window(session("10 s"), by="k").agg(n="count(*)")
    app.view("visits", visits)
    app.view("totals", visits.group("k", ttl=None).agg(n="sum(n)"))
    with TestDriver(app) as driver:
        send(driver, ("a", 10), ("b", 20), ("a", 19), ("a", 10))
        driver.end()
        assert shown(driver, "visits", "k", "window_start", "window_end", "n") == [("a", 10, 20, 1), ("a", 10, 29, 2), ("b", 20, 30, 1)]
        assert shown(driver, "totals", "k", "n") == [("a", 3), ("b", 1)]


def test_an_open_session_that_was_shown_stays_shown_while_it_grows() -> None:
    app = Declaration("visits")
    app.view("visits", records(app).window(session("9 s"), by="k").agg(n="count(*)").emit(early="20 s"))
    with TestDriver(app) as driver:
        send(driver, ("x", 24), ("x", 26))
        assert shown(driver, "visits", "k", "window_end", "n", "pane") == [("x", 33, 1, "early")]
        send(driver, ("y", 33))
        assert shown(driver, "visits", "k", "window_end", "n", "pane") == [("x", 35, 2, "early")], "the end that it named has passed"
        send(driver, ("x", 33))
        assert shown(driver, "visits", "k", "window_end", "n", "pane") == [("x", 35, 2, "early")]
        send(driver, ("y", 40))
        assert shown(driver, "visits", "k", "window_end", "n", "pane") == [("x", 42, 3, "early"), ("y", 49, 2, "early")]


def test_a_window_over_early_panes_of_sessions_hears_of_each_in_time() -> None:
    """A pane names the end of its session so far. When the session goes on, the pane has to leave the window of that time."""
    app = Declaration("visits")
    visits = records(app).window(session("9 s"), by="k").agg(n="count(*)").emit(every=2)
    app.view("ended", visits.window(tumbling("10 s")).agg(sessions="count(*)", n="sum(n)"))
    with TestDriver(app) as driver:
        send(driver, ("x", 0), ("x", 1), ("x", 8), ("y", 16), ("x", 16), ("y", 40))
        driver.end()
        assert shown(driver, "ended", "window_start", "sessions", "n") == [(20, 2, 5), (40, 1, 1)]


def test_a_count_window_waits_for_late_panes_of_the_windows_before_it() -> None:
    app = Declaration("parts")
    parts = records(app).window(tumbling("10 s"), by="k").agg(n="count(*)").emit(until="1 minute", mode="discarding")
    app.view("pairs", parts.window(count_window(2), by="k").agg(n="sum(n)"))
    with TestDriver(app) as driver:
        send(driver, ("x", 4), ("y", 33), ("x", 5), ("x", 6))
        driver.end()
        assert shown(driver, "pairs", "k", "window_number", "n") == [("x", 0, 2), ("x", 1, 1), ("y", 0, 1)]
        assert driver.late("records") == []


def test_what_follows_windows_that_late_parts_correct_takes_each_part_once() -> None:
    app = Declaration("parts")
    parts = records(app).window(tumbling("10 s"), by="k").agg(n="count(*)").emit(until="1 minute", mode="discarding")
    app.view("totals", parts.window(tumbling("20 s"), by="k").agg(n="sum(n)").group("k", ttl=None).agg(n="sum(n)", windows="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("x", 4), ("y", 33), ("x", 5), ("x", 6))
        driver.end()
        assert shown(driver, "totals", "k", "n", "windows") == [("x", 3, 1), ("y", 1, 1)]


def test_an_event_behind_the_watermark_counts_in_the_sliding_windows_that_are_open() -> None:
    app = Declaration("payments")
    app.view("last_ten", records(app).window(sliding("10 s"), by="k").agg(n="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("x", 4), ("y", 10), ("x", 8), ("x", 0), ("y", 11), ("x", 0), ("x", 12))
        driver.end()
        assert shown(driver, "last_ten", "k", "window_end", "n") == [("x", 4, 1), ("x", 12, 3), ("y", 10, 1), ("y", 11, 2)]
        assert [(row["k"], row["at"]) for row in driver.late("records")] == [("x", at(0))], "no window that is open reaches back so far"


def test_a_window_that_discards_says_on_time_that_it_is_complete() -> None:
    app = Declaration("parts")
    parts = records(app).window(tumbling("10 s"), by="k").agg(n="count(*)", most="max(v)").emit(every=1, mode="discarding")
    app.view("parts", parts)
    with TestDriver(app) as driver:
        send(driver, ("x", 1, "a"), ("x", 2, "b"), ("y", 10, "c"))
        assert shown(driver, "parts", "k", "n", "most", "pane", "revision") == [
            ("x", 1, "a", "early", 0), ("x", 1, "b", "early", 1), ("x", 0, None, "on-time", 2), ("y", 1, "c", "early", 0),
        ]  # fmt: skip


def test_every_aggregate_of_a_pane_without_records_is_that_of_none() -> None:
    app = Declaration("parts")
    app.view("parts", records(app).window(tumbling("10 s"), by="k").agg(**EVERY).emit(every=1, mode="discarding"))
    with TestDriver(app) as driver:
        send(driver, ("x", 1, "a"), ("y", 10))
        (empty,) = [row for row in driver.rows("parts") if row["pane"] == "on-time"]
    assert {name: empty[name] for name in EVERY} == {
        name: 0 if text.startswith(("count", "approx_count")) else [] if text.startswith("collect") else None
        for name, text in EVERY.items()
    } | {"ends": [None, None]}


def test_which_of_two_results_of_one_time_is_the_latest_does_not_depend_on_shards() -> None:
    rows = [{"k": f"k{number % 7}", "v": f"v{number}", "at": at(number % 10)} for number in range(40)]
    found = []
    for shards in (1, 2, 3, 4):
        app = Declaration("latest")
        app.view("latest", records(app).window(tumbling("10 s"), by=["k", "v"]).agg(n="count(*)").to_table("n"))
        with TestDriver(app, shards=shards) as driver:
            driver.send("records", rows if shards % 2 else rows[::-1])
            driver.end()
            found.append(shown(driver, "latest", "k", "v", "n"))
    assert found == found[:1] * 4


def test_an_old_result_that_comes_with_the_end_of_the_input_is_as_old_as_before() -> None:
    app = Declaration("ever")
    app.view("ever", records(app).window(global_(), by="k").agg(n="count(*)").emit(every=2).to_table("k", ttl="20 s"))
    with TestDriver(app) as driver:
        send(driver, ("old", 0), ("new", 30))
        driver.end()
        assert shown(driver, "ever", "k", "n") == [("new", 1)]


def test_a_count_window_that_the_end_of_the_input_cuts_short_is_not_late_for_what_follows() -> None:
    app = Declaration("threes")
    app.view("tens", records(app).window(count_window(3), by="k").agg(n="count(*)").window(tumbling("10 s")).agg(n="sum(n)"))
    with TestDriver(app) as driver:
        send(driver, ("a", 0), ("a", 1), ("a", 2), ("b", 3), ("a", 32))
        driver.end()
        assert shown(driver, "tens", "window_start", "n") == [(0, 3), (30, 2)]
        assert driver.late("records") == []


def test_a_late_result_is_told_by_the_columns_that_it_shares_with_its_stream() -> None:
    app = Declaration("orders")
    app.view("new", records(app).to_table("k").to_stream().window(tumbling("10 s"), by="k").agg(n="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("a", 40), ("b", 2))
        driver.end()
        assert [(row["k"], row["step"], row["window_end"]) for row in driver.late("records")] == [
            ("b", "records.table.stream.window", at(10))
        ]


def test_late_results_that_share_no_column_with_their_stream_are_told_each() -> None:
    app = Declaration("orders")
    kinds = records(app).group("k", ttl=None).agg(n="count(*)").select("k as customer", "n").to_stream()
    app.view("changes", kinds.window(tumbling("10 s"), by="op").agg(n="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("later", 40))
        driver.send("records", [{"k": key, "v": None, "at": at(2)} for key in "abc"])
        told = [(row["k"], row["step"], row["window_end"]) for row in driver.late("records")]
        assert told == [(None, "records.group.select.stream.window", at(10))] * 3


def test_an_event_whose_own_sliding_window_is_closed_is_partly_late() -> None:
    app = Declaration("payments")
    app.view("last_ten", records(app).window(sliding("10 s"), by="k").agg(n="count(*)"))
    with TestDriver(app) as driver:
        send(driver, ("x", 4), ("y", 10), ("x", 3), ("x", 12))
        (step,) = [step for step in driver.accounting() if step["step"] == "records.window"]
        assert (step["in"], step["out"], step["late"], step["partly_late"]) == (4, 4, 0, 1)
