"""Pitfalls that are warned of when an app is planned, with the reason, the remedy and the line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream

IDLE = hr.perfect(idle="1 minute")


def planned(declare: Callable[[Stream, Stream], Stream], watermark: Any, *, other: Any = IDLE) -> None:
    app = Declaration("pitfalls")
    columns = "page string, at timestamp"
    clicks = app.stream("clicks", columns, time="at", watermark=watermark)
    app.view("results", declare(clicks, app.stream("views", columns, time="at", watermark=other)))
    app.plan()


def per_minute(clicks: Stream, _: Stream) -> Stream:
    return clicks.window(hr.tumbling("1m"), by="page").agg(n="count(*)")


@pytest.mark.parametrize(
    ("declare", "watermark", "said", "hint"),
    [
        (lambda clicks, _: clicks.window(hr.processing_time("1m")).agg(n="count(*)"), IDLE, "windows by the wall clock", "event time"),
        (lambda clicks, _: clicks.where("at > now()").to_table("page"), IDLE, "a different value each time", "from the record"),
        (lambda clicks, _: clicks.window(hr.global_()).agg(n="count(*)"), IDLE, "nothing is emitted before the input ends", "emit"),
        (lambda clicks, _: clicks.window(hr.global_()).agg(n="count(*)").emit(until="1h"), IDLE, "before the input ends", "every="),
        (lambda clicks, _: clicks.window(hr.tumbling("1m")).agg(age="unix_timestamp(now()) - unix_timestamp(max(at))"), IDLE,
         "'clicks.window' evaluates 'age', which has a different value each time", "from the record"),
        (per_minute, hr.bounded("30 days", idle="1m"), "stays 30 days behind", "until="),
        (per_minute, hr.loss_budget(0.01, max="30 days", idle="1m"), "stays 30 days behind", "until="),
        (per_minute, hr.perfect(idle="1m", max_ahead="365 days"), "365 days ahead of the wall clock", "dead letter"),
        (lambda clicks, views: per_minute(clicks.union(views), views), hr.perfect(), "watermark of 'clicks' has no idle=", "idle="),
        (lambda clicks, views: clicks.union(views).with_previous(by="page", ttl=None).to_table("page"), hr.perfect(), "no idle=", "idle="),
        (lambda clicks, views: clicks.join_within(views, on="page", within="1m").to_table("page"), hr.perfect(),
         "and no state expires", "idle="),
    ],
)  # fmt: skip
def test_a_pitfall_is_warned_of_with_its_remedy(declare: Callable[[Stream, Stream], Stream], watermark: Any, said: str, hint: str) -> None:
    with pytest.warns(hr.PlanWarning, match=said) as found:
        planned(declare, watermark)
    (warning,) = found
    assert "why: " in str(warning.message)
    assert hint in str(warning.message).partition("hint: ")[2]
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("declare", "watermark"),
    [
        (per_minute, hr.perfect()),
        (lambda clicks, views: per_minute(clicks.union(views), views), IDLE),
        (lambda clicks, views: clicks.union(views).dedup("page", ttl="1h").to_table("page"), hr.perfect()),
        (lambda clicks, _: clicks.window(hr.global_(), by="page").agg(n="count(*)").emit(every=10), IDLE),
    ],
)
def test_what_is_near_a_pitfall_but_sound_is_not_warned_of(declare: Callable[[Stream, Stream], Stream], watermark: Any) -> None:
    planned(declare, watermark)


def test_a_partition_that_could_stall_the_watermark_is_warned_of(tmp_path: Path) -> None:
    app = hr.App("partitioned", home=tmp_path)
    clicks = app.stream("clicks", "page string, at timestamp", key="page", time="at", watermark=hr.perfect(), partitions=4)
    app.view("results", per_minute(clicks, clicks))
    with pytest.warns(hr.PlanWarning, match="one of its 4 partitions falls silent"):
        app.plan()


def test_columns_that_the_topic_does_not_have_are_refused_before_an_event_is_dropped(tmp_path: Path) -> None:
    hr.App("before", home=tmp_path).stream("clicks", "page string")
    with pytest.raises(hr.PlanError, match="column 'price' of stream 'clicks' is not in its topic") as error:
        hr.App("after", home=tmp_path).stream("clicks", "page string, price int")
    assert "test_remarks.py" in str(error.value.where)


def test_it_is_said_once_however_often_the_app_is_planned() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        app = Declaration("once")
        app.view("rate", app.stream("clicks", "page string").window(hr.processing_time("1m"), by="page").agg(n="count(*)"))
        app.plan()
        app.plan()
    assert len(said) == 1
