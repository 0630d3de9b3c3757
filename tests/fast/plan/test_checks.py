"""Pitfalls that are refused when an app is planned, with the reason and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import count_window, perfect, processing_time, session, sliding, tumbling
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic


def planned(declare: Callable[[Stream, Stream], Stream]) -> None:
    app = Declaration("pitfalls")
    timed = app.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
    timeless = app.stream("pages", "page string, place string")
    app.view("results", declare(timed, timeless))
    app.plan()


@pytest.mark.parametrize(
    ("declare", "said", "hint"),
    [
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .where("n > 1").window(session("5m"), by="page").agg(n="count(*)"),
            "session windows over 'clicks.window.where', whose results change", "leave out until=",
        ),
        (lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating"),
         "accumulating panes of the sessions", "retracting"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .window(tumbling("1h")).agg(n="sum(n)").emit(early="5m", mode="discarding"),
            "discarding panes over 'clicks.window', whose results change", "retracting",
        ),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating")
            .select("page, window_start, n").group("page", ttl=None).agg(n="sum(n)"),
            "whose panes say again what earlier ones said", "retracting",
        ),
        (lambda clicks, _: clicks.window(sliding("1m"), by="page").agg(n="count(*)").emit(early="5s"), "no early pane", "until"),
        (lambda clicks, _: clicks.window(count_window(9), by="page").agg(n="count(*)").emit(until="1h"), "out when it is full", "leave"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(until="1h")
            .window(sliding("1h")).agg(n="sum(n)"),
            "sliding 1 hour over 'clicks.window', whose results change", "to_stream",
        ),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(every=10, mode="accumulating").where("n = 1"),
            "whose panes say again what earlier ones said", "discarding",
        ),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").window(tumbling("1m")).agg(n="sum(n)"),
         "windows over the table 'clicks.group'", "to_stream"),
        (lambda clicks, _: clicks.to_table("page").where("page != ''").window(tumbling("1m")).agg(n="count(*)"),
         "windows over the table 'clicks.table'", "to_stream"),
        (lambda _, pages: pages.group("page", ttl=None).agg(place="last(place)"), "last over 'pages', which has no event time", "max_by"),
        (lambda _, pages: pages.group("page", ttl="1 day").agg(n="count(*)"), "'pages' has no event time", "ttl=None"),
        (lambda _, pages: pages.to_table("page", ttl="1 day"), "'pages' has no event time", "ttl=None"),
        (lambda _, pages: pages.dedup("page", ttl="1 day").to_table("page"), "'pages' has no event time", "ttl=None"),
        (lambda clicks, _: clicks.to_table("page").dedup("page", ttl="1 day"),
         "duplicates among 'clicks.table', whose results change", "to_stream"),
        (
            lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating")
            .dedup("page", ttl="1 day"),
            "whose panes say again what earlier ones said", "discarding",
        ),
        (
            lambda clicks, _: clicks.window(processing_time("1m"), by="page").agg(n="count(*)").emit(until="1h"),
            "processing time with early= or until=", "leave them out",
        ),
        (lambda clicks, _: clicks.to_table("page").window(processing_time("1m")).agg(n="count(*)"), "over the table", "to_stream"),
        (lambda clicks, _: clicks.window(processing_time("1m")).agg(n="first(page)"), "with first or last", "min_by"),
        (lambda clicks, _: clicks.window(processing_time("1m")).agg(n="count(*)").window(tumbling("1m")).agg(n="sum(n)"),
         "has windows but no watermark", "watermark="),
        (lambda clicks, _: clicks.dedup("page"), r"dedup\('page'\) of 'clicks' has no ttl", "ttl=None"),
        (lambda clicks, _: clicks.distinct(), r"distinct\(\) of 'clicks' has no ttl", "ttl=None"),
        (lambda _, pages: pages.with_previous(by="page", ttl=None).to_table("page"), "'pages', which has no event time", "watermark="),
        (lambda clicks, _: clicks.to_table("page").with_previous(by="page", ttl=None),
         "previous records of 'clicks.table', whose results change", "to_stream"),
        (lambda clicks, _: clicks.with_previous(by="page"), "has no ttl", "ttl=None"),
        (lambda clicks, _: clicks.top(3, by="at").to_table("page"), "top 3 of 'clicks': nothing tells its records apart", "to_table"),
        (lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").top(3, by="n"),
         "top 3 of 'clicks.window': its results are never over", 'per="window"'),
        (lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").top(3, by="n", per="window_start"),
         "its results are never over", "to_table"),
        (lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").top(0, by="n"), "has no order", "above zero"),
        (lambda clicks, _: clicks.dedup([], ttl="1 day"), "compares nothing", "name a key"),
        (lambda clicks, _: clicks.dedup("page", ttl="0s"), "compares nothing", "above zero"),
        (lambda clicks, _: clicks.with_columns(parts="split(page, '/')").distinct(ttl="1h"), "'parts' is array<string>", "no arrays"),
    ],
)  # fmt: skip
def test_a_pitfall_is_refused_with_its_remedy(declare: Callable[[Stream, Stream], Stream], said: str, hint: str) -> None:
    with pytest.raises(PlanError, match=said) as error:
        planned(declare)
    assert error.value.why
    assert hint in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)


@pytest.mark.parametrize(
    "declare",
    [
        lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").window(session("5m"), by="page").agg(n="sum(n)"),
        lambda clicks, _: clicks.group("page", ttl="1 day").agg(last="last(at)"),
        lambda clicks, _: clicks.group("page", ttl=None).agg(n="count(*)").to_stream().window(tumbling("1m"), by="page").agg(n="count(*)"),
        lambda _, pages: pages.group("page", ttl=None).agg(n="count(*)", place="max_by(place, page)"),
        lambda _, pages: pages.dedup("page", ttl=None),
        lambda clicks, _: (
            clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(early="5s", mode="accumulating").top(3, by="n", per="window")
        ),
        lambda clicks, _: clicks.window(session("1m"), by="page").agg(n="count(*)").to_table("page").top(3, by="n"),
        lambda clicks, _: clicks.dedup("page", ttl="1 day").with_previous("at", by="page", ttl="1 day").to_table("page"),
        lambda clicks, _: clicks.to_table("page").to_stream().dedup("page", ttl="1 day").to_table("page"),
    ],
)
def test_what_is_near_a_pitfall_but_sound_is_taken(declare: Callable[[Stream, Stream], Stream]) -> None:
    planned(declare)


def test_a_sink_that_cannot_take_retractions_is_refused_when_planned() -> None:
    def app(**emit: str) -> Declaration:
        declared = Declaration("sinks")
        clicks = declared.stream("clicks", "page string, at timestamp", time="at", watermark=perfect())
        declared.sink(clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(**emit), LogTopic("minutes", append_only=True))
        return declared

    with pytest.raises(PlanError, match="replaced or taken back later") as error:
        app(until="1h").plan()
    assert error.value.why
    assert "to_stream" in str(error.value.hint)
    assert "test_checks.py" in str(error.value.where)
    for emit in ({}, {"until": "1h", "mode": "discarding"}, {"early": "5s", "mode": "accumulating"}):
        app(**emit).plan()


@pytest.mark.parametrize(
    ("emit", "said"),
    [
        ({"late": "5m"}, "late='5m' without until="),
        ({"late": None, "until": "1h"}, "late=None with until="),
        ({"mode": "both"}, "mode='both' is not known"),
        ({"every": 0}, "every=0 is no number of records"),
        ({"early": "0s"}, "early=0 seconds is no time"),
    ],
)
def test_panes_that_cannot_be_are_refused(emit: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        planned(lambda clicks, _: clicks.window(tumbling("1m"), by="page").agg(n="count(*)").emit(**emit))


@pytest.mark.parametrize(
    ("watermark", "other", "said", "hint"),
    [
        (perfect(), None, "'clicks' is aligned with nothing", "leave out align="),
        (perfect(), perfect(), "aligned with 'views', which is never idle", "idle="),
        (None, perfect(idle="1m"), "'clicks' is aligned with nothing", "leave out align="),
    ],
)
def test_an_alignment_that_could_stop_a_stream_is_refused(watermark: Any, other: Any, said: str, hint: str) -> None:
    app = Declaration("aligned")
    clicks = app.stream("clicks", "page string, at timestamp", time="at" if watermark else None, watermark=watermark, align="1m")
    streams = [clicks, *([app.stream("views", "page string, at timestamp", time="at", watermark=other)] if other else [])]
    app.view("pages", streams[0].union(*streams[1:]).group("page", ttl=None).agg(n="count(*)"))
    with pytest.raises(PlanError, match=said) as error:
        app.plan()
    assert hint in str(error.value.hint)
    assert error.value.why
