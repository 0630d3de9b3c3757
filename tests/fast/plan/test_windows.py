"""Windows that cannot be, and what plans say of those that can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, calendar, count_window, custom, global_, hopping, session, sliding, tumbling
from headrace.core.errors import PlanError
from headrace.plan.explain import explained
from headrace.plan.windows.kinds import Window


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: calendar("1 fortnight", zone="UTC"), "is not a unit of a calendar"),
        (lambda: calendar("2 days", zone="UTC"), "nothing says where the first begins"),
        (lambda: calendar("5 months", zone="UTC"), "a year is no multiple of it"),
        (lambda: calendar("1 day", zone="Europe/Atlantis"), "there is no time zone 'Europe/Atlantis'"),
        (lambda: calendar("1 day", zone="UTC", offset="24 hours"), "offset 1 day is not inside a day"),
        (lambda: calendar("1 hour", zone="UTC", offset="500ms"), "clocks are changed at whole seconds"),
        (lambda: sliding("0s"), "holds no time"),
        (lambda: count_window(0), "holds nothing"),
        (lambda: count_window(3, every=4), "leave gaps"),
        (lambda: hopping("1m", every="2m"), "leave gaps"),
        (lambda: custom("1 hour"), "custom\\('1 hour'\\) is not a function"),  # type: ignore[arg-type]
    ],
)
def test_a_window_that_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(PlanError, match=said) as error:
        make()
    assert error.value.hint


def whole(times: object) -> tuple[object, object]:
    return times, times


@pytest.mark.parametrize(
    ("window", "emit", "does", "state", "bound"),
    [
        (tumbling("1m"), {}, "tumbling 1 minute by page: count(*) as n",
         "a row per key and pane of 1 minute", "1 minute behind the watermark"),
        (
            hopping("1h", every="1m"), {"early": "5s", "every": 9, "late": "1m", "until": "1h", "mode": "discarding"},
            "hopping 1 hour every 1 minute by page: count(*) as n, early every 5 seconds, early after 9 records, "
            "corrected until 1 hour after its end, late every 1 minute, discarding",
            "a row per key and window", "2 hours behind the watermark",
        ),
        (session("5m"), {}, "session with gap 5 minutes by page: count(*) as n",
         "a row per key and session", "5 minutes after its last record"),
        (
            calendar("1 month", zone="Asia/Tokyo"), {"until": "1h"},
            "calendar month in Asia/Tokyo by page: count(*) as n, corrected until 1 hour after its end",
            "a row per key and month", "1 month and 1 hour behind the watermark",
        ),
        (sliding("5m"), {}, "sliding 5 minutes by page: count(*) as n", "a row per key and event time", "5 minutes behind the watermark"),
        (count_window(9), {}, "9 records by page: count(*) as n",
         "records ahead of the watermark, a count per key and open window", "none: as many as there are keys"),
        (global_(), {"every": 3}, "global by page: count(*) as n, early after 3 records", "a row per key",
         "none: as many as there are keys"),
        (custom(whole), {}, "windows of whole by page: count(*) as n", "a row per key and window",
         "the end of its window behind the watermark"),
    ],
)  # fmt: skip
def test_a_plan_says_what_a_window_does_and_keeps(window: Window, emit: dict[str, object], does: str, state: str, bound: str) -> None:
    app = Declaration("words")
    clicks = app.stream("clicks", "page string, at timestamp", time="at", watermark=bounded("30s"))
    app.view("results", clicks.window(window, by="page").agg(n="count(*)").emit(**emit))  # type: ignore[arg-type]
    (words,) = [words for words in explained(app.plan()).steps if words.step == "clicks.window"]
    assert (words.does, words.state, words.bound) == (does, state, bound)
