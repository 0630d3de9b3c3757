"""Worked examples of panes, lateness, sessions, tables and duplicates, from documents and tests of Beam, Flink, Kafka Streams and Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.core.errors import PlanError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MODES = ("discarding", "accumulating", "retracting")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def after(moment: datetime) -> int:
    return round((moment - NOON) / timedelta(seconds=1))


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00")


def records(app: Declaration, watermark: Any) -> hr.Stream:
    return app.stream("records", "key string, value int, at timestamp", key="key", time="at", watermark=watermark)


def send(driver: hr.TestDriver, *sent: tuple[str, int, float]) -> None:
    driver.send("records", [{"key": key, "value": value, "at": at(time)} for key, value, time in sent])


@pytest.mark.parametrize(("mode", "last", "total"), [("discarding", 9, 12), ("accumulating", 12, None), ("retracting", 12, 12)])
def test_three_modes_of_beam_are_right_for_readers_that_take_the_last_pane_or_add_them_up(mode: str, last: int, total: int | None) -> None:
    """A window of two minutes with the panes [3] and [8, 1]. Accumulating panes add up to 15, so adding them up is refused here."""
    app = Declaration("beam")
    sums = records(app, hr.bounded("5 minutes")).window(hr.tumbling("2 minutes")).agg(value="sum(value)").emit(every=1, mode=mode)
    app.view("last", sums.to_table("window_start"))
    totals = sums.group("window_start", ttl=None).agg(value="sum(value)")
    if total is None:
        app.view("total", totals)
        with pytest.raises(PlanError, match="counted once for each pane"):
            app.plan()
        app = Declaration("beam")
        sums = records(app, hr.bounded("5 minutes")).window(hr.tumbling("2 minutes")).agg(value="sum(value)").emit(every=1, mode=mode)
        app.view("last", sums.to_table("window_start"))
    else:
        app.view("total", totals)
    with hr.TestDriver(app) as driver:
        send(driver, ("k", 3, 399))
        send(driver, ("k", 8, 446), ("k", 1, 466))
        assert [row["value"] for row in driver.rows("last")] == [last]
        if total is not None:
            assert [row["value"] for row in driver.rows("total")] == [total]


@pytest.mark.parametrize(
    ("mode", "panes"),
    [
        ("discarding", [("early", 5), ("early", 9), ("on-time", None), ("late", 7)]),
        ("accumulating", [("early", 5), ("early", 14), ("on-time", 14), ("late", 21)]),
    ],
)
def test_early_on_time_and_late_panes_of_beam(mode: str, panes: list[tuple[str, int | None]]) -> None:
    """`AfterWatermark` with early and late firings of one element; what comes after the allowed lateness is dropped."""
    app = Declaration("beam")
    sums = records(app, hr.perfect()).window(hr.tumbling("1 minute")).agg(value="sum(value)")
    app.view("panes", sums.emit(every=1, until="2 minutes", mode=mode), key=["window_start", "revision"])
    with hr.TestDriver(app) as driver:
        for value, time in ((5, 10), (9, 20)):
            send(driver, ("k", value, time))
        driver.advance(at(60))
        send(driver, ("k", 7, 30))
        driver.advance(at(180))
        send(driver, ("k", 100, 40))
        assert [(row["pane"], row["value"]) for row in driver.rows("panes")] == panes
        assert [row["value"] for row in driver.late("records")] == [100]


def test_a_window_of_flink_with_an_allowed_lateness_is_there_until_the_watermark_passes_it() -> None:
    """Windows of five minutes with an allowed lateness of one: that of 12:00 to 12:05 is removed when the watermark passes 12:06."""
    app = Declaration("flink")
    counts = records(app, hr.perfect()).window(hr.tumbling("5 minutes"), by="key").agg(n="count(*)").emit(until="1 minute")
    app.view("counts", counts)
    with hr.TestDriver(app) as driver:
        send(driver, ("a", 1, 299.999999))
        assert driver.rows("counts") == []
        driver.advance(at(300))
        assert [(row["n"], row["pane"]) for row in driver.rows("counts")] == [(1, "on-time")]
        driver.advance(at(359.999999))
        send(driver, ("a", 1, 1))
        assert [(row["n"], row["pane"]) for row in driver.rows("counts")] == [(2, "late")]
        driver.advance(at(360))
        send(driver, ("a", 1, 2))
        assert [(row["n"], row["pane"]) for row in driver.rows("counts")] == [(2, "late")]
        assert [row["at"] for row in driver.late("records")] == [at(2)], "the side output of Flink"
        assert driver.state()[0]["rows"] == 0


@pytest.mark.parametrize("mode", ["retracting", "discarding"])
def test_a_late_element_of_flink_bridges_two_sessions_that_have_fired(mode: str) -> None:
    """Flink gives a third result next to the two; here that is asked for by `discarding`, and `retracting` takes them back."""
    app = Declaration("flink")
    visits = records(app, hr.perfect()).window(hr.session("10 seconds"), by="key").agg(n="count(*)").emit(until="1 minute", mode=mode)
    app.view("visits", visits, key=[*visits.node.keys] if mode == "retracting" else ["key", "window_start", "window_end", "revision"])
    app.view("totals", visits.group("key", ttl=None).agg(n="sum(n)"))
    with hr.TestDriver(app) as driver:
        send(driver, ("a", 1, 0), ("a", 1, 15), ("b", 1, 40))
        fired = [(after(row["window_start"]), after(row["window_end"]), row["n"]) for row in driver.rows("visits")]
        assert fired == [(0, 10, 1), (15, 25, 1)]
        send(driver, ("a", 1, 8))
        found = [(after(row["window_start"]), after(row["window_end"]), row["n"]) for row in driver.rows("visits")]
        assert found == ([(0, 25, 3)] if mode == "retracting" else [(0, 10, 1), (0, 25, 1), (15, 25, 1)])
        assert [row["n"] for row in driver.rows("totals")] == [3]


def test_first_and_last_row_of_flinks_deduplication() -> None:
    """`ROW_NUMBER() OVER (PARTITION BY key ORDER BY at)`: the first row goes on when it comes, the last is replaced by a later one."""
    app = Declaration("flink")
    rows = records(app, hr.bounded("1 minute"))
    app.view("first", rows.dedup("key", ttl=None).to_table("key"))
    app.view("last", rows.to_table("key"))
    with hr.TestDriver(app) as driver:
        for sent in (("a", 1, 10), ("a", 2, 20), ("b", 3, 5), ("a", 4, 15), ("b", 5, 30)):
            send(driver, sent)
        assert [(row["key"], row["value"]) for row in driver.rows("first")] == [("a", 1), ("b", 3)]
        assert [(row["key"], row["value"]) for row in driver.rows("last")] == [("a", 2), ("b", 5)]


def test_kafka_streams_suppresses_all_but_the_final_count_of_a_window() -> None:
    """Windows of two milliseconds with a grace of two: that of 10 closes at 14, and the record of 11 that came at 13 counts."""
    app = Declaration("kafka")
    # Kafka's grace is the distance of the watermark here.
    rows = app.stream("records", "key string, at timestamp", key="key", time="at", watermark=hr.bounded("2 milliseconds"))
    app.view("counts", rows.window(hr.tumbling("2 milliseconds"), by="key").agg(n="count(*)"))
    with hr.TestDriver(app) as driver:
        for key, time in (("A", 10), ("A", 11), ("A", 12), ("foo", 13), ("A", 11)):
            driver.send("records", [{"key": key, "at": at(time / 1000)}])
            assert driver.rows("counts") == []
        driver.send("records", [{"key": "foo", "at": at(0.014)}])
        assert [(row["key"], row["window_start"], row["n"]) for row in driver.rows("counts")] == [("A", at(0.010), 3)]
        driver.send("records", [{"key": "A", "at": at(0.011)}])
        assert len(driver.late("records")) == 1
        assert [row["n"] for row in driver.rows("counts")] == [3]


def test_users_per_region_of_kafka_streams_follow_their_table() -> None:
    """`KTable.groupBy(region).count()`. Where Kafka has a region with zero users, there is none here."""
    app = Declaration("kafka")
    users = app.table("users", "user string, region string", key="user", source=hr.kafka("users", servers="127.0.0.1:1"))
    app.view("regions", users.group("region", ttl=None).agg(users="count(*)"))

    def regions() -> dict[str, int]:
        return {row["region"]: row["users"] for row in driver.rows("regions")}

    with hr.TestDriver(app) as driver:
        seen = []
        for user, region in (("alice", "E"), ("bob", "A"), ("charlie", "A"), ("alice", "A"), ("charlie", None), ("bob", "E")):
            if region is None:
                driver.remove("users", [{"user": user}])
            else:
                driver.send("users", [{"user": user, "region": region}])
            driver.restart()
            seen.append(regions())
    assert seen == [{"E": 1}, {"E": 1, "A": 1}, {"E": 1, "A": 2}, {"A": 3}, {"A": 2}, {"A": 1, "E": 1}]


def test_words_of_spark_in_windows_that_overlap_with_a_watermark() -> None:
    """Ten minutes every five, a watermark of ten, in update mode: 12:04 comes when 12:21 was seen, and is dropped."""
    app = Declaration("spark")
    words = app.stream("words", "word string, at timestamp", key="word", time="at", watermark=hr.bounded("10 minutes"))
    counts = words.window(hr.hopping("10 minutes", every="5 minutes"), by="word").agg(n="count(*)").emit(every=1)
    app.view("counts", counts)
    triggers: list[tuple[str, dict[str, dict[str, int]]]] = [
        ("12:07 dog, 12:08 owl", {"12:00": {"dog": 1, "owl": 1}, "12:05": {"dog": 1, "owl": 1}}),
        ("12:14 dog, 12:09 cat", {
            "12:00": {"dog": 1, "owl": 1, "cat": 1}, "12:05": {"dog": 2, "owl": 1, "cat": 1}, "12:10": {"dog": 1}}),
        ("12:15 cat, 12:08 dog, 12:13 owl, 12:21 owl", {
            "12:00": {"dog": 2, "owl": 1, "cat": 1}, "12:05": {"dog": 3, "owl": 2, "cat": 1}, "12:10": {"dog": 1, "owl": 1, "cat": 1},
            "12:15": {"cat": 1, "owl": 1}, "12:20": {"owl": 1}}),
        ("12:04 donkey, 12:26 owl, 12:17 owl", {
            "12:00": {"dog": 2, "owl": 1, "cat": 1}, "12:05": {"dog": 3, "owl": 2, "cat": 1}, "12:10": {"dog": 1, "owl": 2, "cat": 1},
            "12:15": {"cat": 1, "owl": 2}, "12:20": {"owl": 2}, "12:25": {"owl": 1}}),
    ]  # fmt: skip
    with hr.TestDriver(app) as driver:
        for sent, table in triggers:
            driver.send("words", [{"word": text.split()[1], "at": clock(f"{text.split()[0]}:00")} for text in sent.split(", ")])
            found: dict[str, dict[str, int]] = {}
            for row in driver.rows("counts"):
                found.setdefault(f"{row['window_start']:%H:%M}", {})[row["word"]] = row["n"]
            assert found == table
        assert [row["word"] for row in driver.late("words")] == ["donkey"]


def test_duplicates_of_spark_within_the_watermark_by_all_columns() -> None:
    app = Declaration("spark")
    seconds = app.stream("seconds", "at timestamp", time="at", watermark=hr.bounded("10 seconds"))
    app.sink(seconds.distinct(ttl="10 seconds"), hr.log("once"), name="once")
    with hr.TestDriver(app) as driver:
        for sent, new in [([*range(10, 16)] * 5, [*range(10, 16)]), ([*range(13, 18)], [16, 17]), ([5], []), ([35], [35]), ([55], [55])]:
            known = len(driver.rows("once"))
            driver.send("seconds", [{"at": at(second)} for second in sent])
            assert sorted(after(row["at"]) for row in driver.rows("once")[known:]) == new
        assert [after(row["at"]) for row in driver.late("seconds")] == [5]


def test_duplicates_of_spark_within_the_watermark_by_a_key() -> None:
    app = Declaration("spark")
    app.sink(records(app, hr.bounded("2 seconds")).dedup("key", ttl="2 seconds"), hr.log("once"), name="once")
    with hr.TestDriver(app) as driver:
        for sent, new in [("a17", "a17"), ("a16", ""), ("a13", ""), ("b22 c21", "b22 c21"), ("a21", "a21"), ("d25", "d25")]:
            known = len(driver.rows("once"))
            send(driver, *((text[0], 1, int(text[1:])) for text in sent.split()))
            assert " ".join(sorted(f"{row['key']}{after(row['at'])}" for row in driver.rows("once")[known:])) == new
        assert [after(row["at"]) for row in driver.late("records")] == [13]
