"""The test driver: whole apps in virtual time, without a JVM."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, custom, hopping, session, tumbling
from headrace.core.errors import JobError, PlanError, SchemaError
from headrace.log.target import LogTopic
from headrace.plan.explain import explained
from headrace.testing.driver import TestDriver


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{clock}+00:00")


def page_views(app: Declaration, late: str = "side") -> Stream:
    return app.stream(
        "page_views",
        schema="url string, user string, ms int, at timestamp",
        key="url",
        time="at",
        watermark=bounded("10 seconds"),
        late=late,
    )


def view(url: str | None, clock: str, user: str = "u", ms: int = 1) -> dict[str, Any]:
    return {"url": url, "user": user, "ms": ms, "at": at(clock)}


def test_a_window_fires_when_the_watermark_passes_its_end() -> None:
    app = Declaration("counts")
    app.view("per_url", page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00"), view("/a", "12:00:59"), view("/b", "12:01:05")])
        assert driver.rows("per_url") == []
        driver.send("page_views", [view("/b", "12:01:10")])
        assert [(row["url"], row["views"], row["pane"], row["revision"]) for row in driver.rows("per_url")] == [("/a", 2, "on-time", 0)]
        driver.end()
        assert [(row["url"], row["views"]) for row in driver.rows("per_url")] == [("/a", 2), ("/b", 2)]


def test_a_late_record_goes_to_the_side_with_its_window_and_watermark() -> None:
    app = Declaration("counts")
    app.view("per_url", page_views(app).select("url, at").window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.advance("2026-01-01T12:05:00Z")
        driver.send("page_views", [view("/a", "12:00:30", user="late one"), view("/a", "12:05:30")])
        (late,) = driver.late("page_views")
        assert (late["url"], late["user"], late["at"]) == ("/a", "late one", at("12:00:30"))
        assert (late["watermark"], late["window_start"], late["window_end"]) == (at("12:05:00"), at("12:00:00"), at("12:01:00"))
        counts = {row["step"]: row for row in driver.accounting()}
        assert counts["page_views.select.window"] | {"step": ""} == {
            "step": "", "in": 2, "out": 1, "late": 1, "duplicate": 0, "filtered": 0, "dead_letter": 0, "partly_late": 0,
        }  # fmt: skip


def test_dropping_late_records_must_be_spelled_and_is_counted_all_the_same() -> None:
    app = Declaration("counts")
    app.view("per_url", page_views(app, late="drop").window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.advance("2026-01-01T12:05:00Z")
        driver.send("page_views", [view("/a", "12:00:30")])
        assert driver.late("page_views") == []
        assert {row["step"]: row["late"] for row in driver.accounting()}["page_views.window"] == 1


def test_a_late_session_record_keeps_all_its_columns() -> None:
    app = Declaration("visits")
    app.view("visits", page_views(app).window(session("30 seconds"), by="user").agg(pages="count(*)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00")])
        driver.advance("2026-01-01T12:05:00Z")
        driver.send("page_views", [view("/old", "12:01:00", ms=7)])
        (late,) = driver.late("page_views")
        assert {name: late[name] for name in ("url", "user", "ms", "at")} == view("/old", "12:01:00", ms=7)


def test_a_corrected_result_reaches_every_later_step() -> None:
    app = Declaration("corrections")
    per_url = page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)").emit(until="1 hour")
    app.view("per_url", per_url)
    app.view("rare", per_url.where("views < 2"))
    app.view("per_hour", per_url.window(tumbling("1 hour")).agg(views="sum(views)", pages="count(*)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00"), view("/b", "12:00:01")])
        driver.advance("2026-01-01T12:02:00Z")
        assert [row["url"] for row in driver.rows("rare")] == ["/a", "/b"]
        driver.send("page_views", [view("/a", "12:00:30")])
        assert [(row["url"], row["views"], row["pane"], row["revision"]) for row in driver.rows("per_url")] == [
            ("/a", 2, "late", 1),
            ("/b", 1, "on-time", 0),
        ]
        assert [row["url"] for row in driver.rows("rare")] == ["/b"]
        driver.restart()
        driver.end()
        assert [(row["views"], row["pages"]) for row in driver.rows("per_hour")] == [(3, 2)]


def test_bad_records_become_dead_letters_and_the_stream_goes_on() -> None:
    app = Declaration("bad")
    shares = page_views(app).with_columns(share="100 / ms")
    app.view("shares", shares.window(tumbling("1 minute"), by="url").agg(top="max(share)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00", ms=0), {"url": "/b", "ms": 1}, view("/c", "12:00:00", ms=4)])
        driver.end()
        assert [(row["url"], row["top"]) for row in driver.rows("shares")] == [("/c", 25.0)]
        letters = driver.dead_letters("page_views")
        assert [(letter["step"], letter["offset"]) for letter in letters] == [("page_views", 1), ("page_views.with_columns", 0)]
        assert letters[0]["reason"] == "no event time in at"
        assert "division by zero" in letters[1]["reason"]
        assert '"url":"/a"' in letters[1]["record"]
        assert sum(row["dead_letter"] for row in driver.accounting()) == 2


def test_dead_letters_show_bytes_as_base64() -> None:
    app = Declaration("bytes")
    columns = "raw binary, parts array<binary>, place struct<mark: binary, n: int>, by map<string, binary>, at timestamp"
    frames = app.stream("frames", schema=columns, time="at", watermark=bounded("10 seconds"))
    app.view("count", frames.window(tumbling("1 minute")).agg(n="count(*)"))
    with TestDriver(app) as driver:
        full = {"raw": b"\xff", "parts": [b"a", None], "place": {"mark": b"", "n": 1}, "by": {"k": b"a"}}
        driver.send("frames", [full, {"raw": None}])
        records = [json.loads(letter["record"]) for letter in driver.dead_letters("frames")]
    assert records == [
        {"raw": "/w==", "parts": ["YQ==", None], "place": {"mark": "", "n": 1}, "by": [{"key": "k", "value": "YQ=="}], "at": None},
        {"raw": None, "parts": None, "place": None, "by": None, "at": None},
    ]


def test_a_time_too_far_ahead_closes_no_window() -> None:
    app = Declaration("ahead")
    app.view("per_url", page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app, starts_at="2026-01-01T12:00:00Z") as driver:
        far = {"url": "/a", "at": datetime(2200, 1, 1, tzinfo=UTC)}
        driver.send("page_views", [view("/a", "12:00:10"), far])
        assert driver.rows("per_url") == []
        assert [letter["reason"] for letter in driver.dead_letters("page_views")] == [
            "at is more than 1 hour (max_ahead) later than the wall clock"
        ]


def test_a_table_follows_its_stream_and_a_group_counts_without_an_end() -> None:
    app = Declaration("tables")
    views = page_views(app)
    app.view("last_page", views.to_table(key="user"))
    app.view("per_user", views.group("user", ttl=None).agg(pages="count(*)", time="sum(ms)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00", "ann"), view("/b", "12:00:05", "bob"), view("/c", "11:59:00", "ann")])
        driver.send("page_views", [view("/d", "12:00:06", "bob")])
        assert [(row["user"], row["url"]) for row in driver.rows("last_page")] == [("ann", "/a"), ("bob", "/d")]
        assert [(row["user"], row["pages"], row["time"]) for row in driver.rows("per_user")] == [("ann", 2, 2), ("bob", 2, 2)]


@pytest.mark.parametrize("rows", [[{"url": "/a", "color": "red"}], [{"url": "/a", "ms": "many"}]])
def test_a_record_that_does_not_fit_is_refused_with_the_columns(rows: list[dict[str, Any]]) -> None:
    app = Declaration("fit")
    app.view("urls", page_views(app).to_table(key="url"))
    with TestDriver(app) as driver, pytest.raises(SchemaError, match="page_views"):
        driver.send("page_views", rows)


def test_an_unknown_view_or_stream_is_named_with_those_there_are() -> None:
    app = Declaration("names")
    app.view("urls", page_views(app).to_table(key="url"))
    with TestDriver(app) as driver:
        with pytest.raises(PlanError, match="no view 'url'") as error:
            driver.rows("url")
        assert "urls" in str(error.value)
        with pytest.raises(PlanError, match="no stream 'views'"):
            driver.late("views")


def test_silence_closes_a_window_over_the_results_of_windows() -> None:
    app = Declaration("silence")
    views = app.stream("page_views", "url string, at timestamp", key="url", time="at", watermark=bounded("10s", idle="1 minute"))
    busy = views.window(tumbling("1 minute"), by="url").agg(views="count(*)").where("views > 1")
    app.view("busy_times", busy.window(session("5 minutes"), by="url").agg(minutes="count(*)"))
    with TestDriver(app, starts_at="2026-01-01T12:00:00Z") as driver:
        driver.send("page_views", [{"url": "/a", "at": at("12:00:10")}, {"url": "/a", "at": at("12:00:20")}])
        driver.wait("59 seconds")
        assert driver.rows("busy_times") == []
        driver.wait("1 second")
        assert [(row["url"], row["minutes"], row["pane"]) for row in driver.rows("busy_times")] == [("/a", 1, "idle")]


@pytest.mark.parametrize("meanwhile", [lambda driver: driver.advance(at("12:01:00")), lambda driver: driver.wait("1 minute")])
def test_a_wall_clock_that_was_not_set_has_no_record_ahead_of_it(meanwhile: Callable[[TestDriver], None]) -> None:
    app = Declaration("clock")
    app.view("urls", page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.wait("1 second")
        driver.send("page_views", [view("/a", "12:00:01")])
        meanwhile(driver)
        driver.send("page_views", [view("/a", "18:00:00")])
        driver.end()
        assert [row["window_start"] for row in driver.rows("urls")] == [at("12:00:00"), at("18:00:00")]
        assert driver.dead_letters("page_views") == []


@pytest.mark.parametrize("year", [2026, 1960])
@pytest.mark.parametrize("meanwhile", [lambda driver: driver.wait("1 second"), lambda driver: driver.send("fast", [])])
def test_no_stream_is_silent_since_before_the_first_record_where_the_clock_was_not_set(
    meanwhile: Callable[[TestDriver], None], year: int
) -> None:
    app = Declaration("clock")
    fast, slow = (app.stream(name, "at timestamp", time="at", watermark=bounded("0s", idle="1 minute")) for name in ("fast", "slow"))
    app.view("minutes", fast.union(slow).window(tumbling("1 minute")).agg(records="count(*)"))
    with TestDriver(app) as driver:
        meanwhile(driver)
        driver.send("fast", [{"at": at("12:00:00").replace(year=year)}])
        driver.send("fast", [{"at": at("12:00:58").replace(year=year)}])
        assert driver.watermark is None
        driver.send("fast", [{"at": at("12:01:00").replace(year=year)}])
        assert driver.watermark == at("12:01:00").replace(year=year)


def test_a_view_under_another_key_has_the_latest_result_whatever_shard_it_came_from() -> None:
    app = Declaration("latest")
    per_url = page_views(app).window(tumbling("1 minute"), by=("url", "user")).agg(views="count(*)")
    app.view("per_user", per_url, key="user")
    app.view("pages", page_views_again(app), key="user")
    with TestDriver(app, shards=4, partitions=3) as driver:
        for minute in (2, 0, 3, 1):
            driver.send("page_views", [view(f"/{minute}", f"12:0{minute}:00", user) for user in ("ann", "bob")])
            driver.send("clicks", [{"page": minute, "user": "ann", "at": at(f"12:0{minute}:00")}])
        driver.end()
        assert [(row["user"], row["url"]) for row in driver.rows("per_user")] == [("ann", "/3"), ("bob", "/3")]
        assert [(row["user"], row["page"]) for row in driver.rows("pages")] == [("ann", 3)]


def page_views_again(app: Declaration) -> Stream:
    return app.stream("clicks", schema="page int, user string, at timestamp", key="page", time="at", watermark=bounded("1 hour"))


def test_a_view_under_another_key_falls_back_when_its_result_is_retracted() -> None:
    app = Declaration("back")
    rare = page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)").emit(until="1 hour").where("views < 2")
    app.view("last_rare", rare.select("url, window_start as minute, views"), key="url")
    with TestDriver(app, shards=3) as driver:
        driver.send("page_views", [view("/a", "12:00:00"), view("/a", "12:01:00")])
        driver.advance("2026-01-01T12:03:00Z")
        assert [row["minute"] for row in driver.rows("last_rare")] == [at("12:01:00")]
        driver.send("page_views", [view("/a", "12:01:30")])
        assert [row["minute"] for row in driver.rows("last_rare")] == [at("12:00:00")]


def test_a_sum_that_does_not_fit_fails_that_result_alone_and_loudly() -> None:
    app = Declaration("overflow")
    payments = app.stream("payments", schema="card string, cents bigint, at timestamp", time="at", watermark=bounded("1 minute"))
    app.view("spent", payments.window(tumbling("1 minute"), by="card").agg(total="sum(cents)", mean="avg(cents)"))
    app.view("ever", payments.group("card", ttl=None).agg(total="sum(cents)"))
    most = 2**63 - 1
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "a", "cents": most, "at": at("12:00:00")}, {"card": "b", "cents": 5, "at": at("12:00:00")}])
        driver.send("payments", [{"card": "a", "cents": 1, "at": at("12:00:01")}])
        assert [(row["card"], row["total"]) for row in driver.rows("ever")] == [("b", 5)]
        driver.send("payments", [{"card": "a", "cents": -3, "at": at("12:05:02")}])
        assert [(row["card"], row["total"]) for row in driver.rows("ever")] == [("a", most - 2), ("b", 5)]
        assert [(row["card"], row["total"]) for row in driver.rows("spent")] == [("b", 5)]
        letters = {letter["step"]: letter for letter in driver.dead_letters("payments")}
        assert set(letters) == {"payments.window.results", "payments.group.results"}
        assert {letter["reason"] for letter in letters.values()} == {"overflow in sum(cents)"}
        assert '"card":"a","window_start":"2026-01-01T12:00:00' in letters["payments.window.results"]["record"].replace(" ", "")
        counts = {row["step"]: row["dead_letter"] for row in driver.accounting()}
        assert (counts["payments.window.results"], counts["payments.group.results"], counts["payments.window"]) == (1, 1, 0)


def test_a_stream_without_a_time_is_counted_and_kept_in_the_order_of_arrival() -> None:
    app = Declaration("timeless")
    pages = app.stream("pages", "page string, place string", key="page")
    app.view("counts", pages.group("page", ttl=None).agg(records="count(*)", least="min(place)"))
    app.view("places", pages.to_table(key="page"))
    with TestDriver(app) as driver:
        driver.send("pages", [{"page": "/a", "place": "top"}, {"page": "/a", "place": "end"}])
        driver.restart()
        driver.send("pages", [{"page": "/a", "place": "mid"}])
        assert driver.rows("counts") == [{"page": "/a", "records": 3, "least": "end"}]
        assert driver.rows("places") == [{"page": "/a", "place": "mid"}]


def test_rows_stand_in_the_order_of_their_keys_with_nan_behind_numbers_and_nothing_last() -> None:
    app = Declaration("numbers")
    app.view("counts", app.stream("numbers", "n double").group("n", ttl=None).agg(records="count(*)"))
    with TestDriver(app) as driver:
        driver.send("numbers", [{"n": number} for number in (3.0, math.nan, None, 2.0, math.inf, 1.0)])
        assert str([row["n"] for row in driver.rows("counts")]) == "[1.0, 2.0, 3.0, inf, nan, None]"


def test_the_size_of_the_state_is_known_for_each_step_and_falls_when_windows_close() -> None:
    app = Declaration("counts")
    views = page_views(app)
    app.view("per_url", views.window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    app.view("per_user", views.group("user", ttl="10 minutes").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00"), view("/b", "12:00:01"), view("/b", "12:01:01", user="v")])
        sizes = {size["step"]: size for size in driver.state()}
        assert {step: size["rows"] for step, size in sizes.items()} == {"page_views.window": 3, "page_views.group": 2}
        assert all(size["bytes"] > 0 for size in sizes.values())
        driver.advance("2026-01-01T12:11:00Z")
        driver.send("page_views", [view("/c", "12:11:00", user="w")])
        assert {size["step"]: size["rows"] for size in driver.state()} == {"page_views.window": 1, "page_views.group": 2}
        driver.advance("2026-01-01T12:11:01Z")
        assert {size["step"]: size["rows"] for size in driver.state()} == {"page_views.window": 1, "page_views.group": 1}


def test_a_sink_is_collected_under_its_name_without_a_server() -> None:
    app = Declaration("sinks")
    clicks = app.stream("clicks", schema="page string, n bigint")
    app.sink(clicks, LogTopic("all"), name="facts")
    app.sink(clicks.group("page", ttl=None).agg(n="sum(n)"), LogTopic("sums"), name="latest")
    with TestDriver(app) as driver:
        driver.send("clicks", [{"page": "b", "n": 1}, {"page": "a", "n": 2}])
        driver.send("clicks", [{"page": "b", "n": 3}])
        assert [row["n"] for row in driver.rows("facts")] == [1, 2, 3]
        assert driver.rows("latest") == [{"page": "a", "n": 2}, {"page": "b", "n": 4}]


def test_a_stream_in_a_union_with_itself_is_read_twice() -> None:
    app = Declaration("twice")
    clicks = app.stream("clicks", schema="page string")
    app.view("counts", clicks.union(clicks).group("page", ttl=None).agg(records="count(*)"))
    with TestDriver(app) as driver:
        driver.send("clicks", [{"page": "/a"}])
        assert driver.rows("counts") == [{"page": "/a", "records": 2}]


def test_what_comes_after_the_end_is_late_without_a_watermark_that_no_calendar_has() -> None:
    app = Declaration("ended")
    app.view("per_url", page_views(app).window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.end()
        driver.send("page_views", [view("/a", "12:00:00")])
        (late,) = driver.late("page_views")
        assert (late["url"], late["watermark"], late["reason"]) == ("/a", None, "the input was said to have ended")


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_a_time_at_the_edge_of_the_calendar_is_a_dead_letter(moment: str) -> None:
    app = Declaration("edges")
    app.view("per_url", page_views(app).window(hopping("7 minutes", every="1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.send("page_views", [view("/a", "12:00:00"), {"url": "/a", "user": "u", "ms": 1, "at": moment}])
        driver.end()
        assert len(driver.rows("per_url")) == 7
        assert len(driver.dead_letters("page_views")) == 1


def test_the_two_zeros_are_one_key_and_so_is_what_is_no_number() -> None:
    app = Declaration("numbers")
    app.view("counts", app.stream("sizes", schema="size double").group("size", ttl=None).agg(records="count(*)"))
    with TestDriver(app) as driver:
        for size in (math.nan, 0.0, -0.0, -math.nan):
            driver.send("sizes", [{"size": size}])
        assert {str(row["size"]): row["records"] for row in driver.rows("counts")} == {"0.0": 2, "nan": 2}


def test_hops_that_share_next_to_no_pane_and_years_without_a_record_cost_nothing() -> None:
    app = Declaration("hops")
    views = page_views(app)
    uneven = hopping("1 hour", every="59 minutes 59.999999 seconds")
    app.view("uneven", views.window(uneven, by="url").agg(views="count(*)"))
    app.view("seconds", views.window(hopping("1 minute", every="1 second"), by="url").agg(views="count(*)").emit(until="1 hour"))
    assert "a row per key and window" in str(explained(app.plan()))
    with TestDriver(app) as driver:
        driver.send("page_views", [{"url": "/a", "user": "u", "ms": 1, "at": "1970-01-01T00:00:00Z"}, view("/a", "12:00:00")])
        driver.send("page_views", [view("/a", "12:01:30")])
        driver.end()
        # The first moment of 1970 is in two windows: they share a microsecond there.
        assert [row["views"] for row in driver.rows("uneven")] == [1, 1, 2]
        assert [row["views"] for row in driver.rows("seconds")] == [1] * 180


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda times: times[:1] / 0, "UFuncTypeError|TypeError"),
        (lambda times: (times,), "not enough values"),
        (lambda times: (times[:1], times[:1]), "it gave 1 bounds for 2 times"),
        (lambda times: ("soon", "later"), "datetime"),
    ],
)
def test_a_function_of_custom_windows_that_fails_stops_the_job_with_its_line(function: Any, said: str) -> None:
    app = Declaration("custom")
    app.view("per_url", page_views(app).window(custom(function), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver, pytest.raises(JobError, match=said) as error:
        driver.send("page_views", [view("/a", "12:00:00"), view("/a", "12:00:01")])
    assert "test_driver.py:" in str(error.value)


def test_a_record_that_missed_some_of_its_windows_is_counted_as_partly_late_outside_the_sum() -> None:
    for emitted in (False, True):
        app = Declaration("hopping")
        counts = page_views(app).window(hopping("10 minutes", every="5 minutes"), by="url").agg(views="count(*)")
        app.view("per_url", counts.emit(early="1 minute") if emitted else counts)
        with TestDriver(app) as driver:
            driver.advance("2026-01-01T12:05:00Z")
            # In 11:55-12:05, which has fired, and in 12:00-12:10; in 12:00-12:10 and 12:05-12:15; in none that is open.
            driver.send("page_views", [view("/a", "12:04:00"), view("/a", "12:06:00"), view("/a", "11:54:00")])
            counts_of = next(row for row in driver.accounting() if row["step"] == "page_views.window")
            assert [counts_of[name] for name in ("in", "out", "late", "partly_late")] == [3, 2, 1, 1]


def test_the_accounting_knows_the_first_reason_of_late_records_and_dead_letters() -> None:
    app = Declaration("reasons")
    app.view("per_url", page_views(app).where("100 / ms > 1").window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    with TestDriver(app) as driver:
        driver.advance("2026-01-01T12:05:00Z")
        driver.send("page_views", [view("/a", "12:00:00", ms=1), view("/a", "12:06:00", ms=0)])
        assert driver.reasons() == {
            "page_views.where": {"dead_letter": "division by zero in 100 / ms; try_divide(100, ms) gives null instead"},
            "page_views.where.window": {"late": "every window of the record is closed"},
        }
