"""Logic of the user's own in a whole app: every record is accounted for, and what fails says where."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import HeadraceError
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds
from tests.support.streams import SCHEMA, START, at


def records(app: Declaration, bound: str = "10s") -> Stream:
    return app.stream("records", SCHEMA, key="key", time="at", watermark=bounded(bound))


def spree(event: Any, state: Any, timers: Any) -> Any:
    """Alert at the third record within a minute of the first, and once more when the minute has passed."""
    state.count = (state.count or 0) + 1
    if state.count == 1:
        timers.after("1 minute")
    if event.value is None:
        raise ValueError(f"no value at {timers.now:%H:%M:%S}")
    if state.count == 3:
        yield {"key": event.key, "said": "three", "count": state.count, "at": timers.now}


def over(timer: Any, state: Any) -> dict[str, Any]:
    said = {"key": timer.key.key, "said": "over", "count": state.count, "at": timer.at}
    state.clear()
    return said


def sprees(app: Declaration, **options: Any) -> Stream:
    returns = "key string, said string, count int, at timestamp"
    return records(app).process(spree, by="key", state="count int", returns=returns, on_timer=over, ttl="1 hour", **options)


def sent(seconds: list[int], values: list[int | None] | None = None) -> list[dict[str, Any]]:
    return [{"key": "a", "value": value, "at": at(second)} for second, value in zip(seconds, values or [1] * len(seconds), strict=True)]


def test_a_timer_fires_before_the_events_of_its_moment_and_the_state_is_let_go() -> None:
    app = Declaration("sprees")
    app.view("alerts", sprees(app), key=["key", "said", "at"])
    with TestDriver(app) as driver:
        driver.send("records", sent([30, 0, 20]))
        driver.send("records", sent([60, 59, 100]))
        assert [(row["said"], row["count"], row["at"]) for row in driver.rows("alerts")] == [("over", 4, at(60)), ("three", 3, at(30))]
        driver.send("records", sent([5]))
        assert [(row["value"], row["reason"]) for row in driver.late("records")] == [(1, "the watermark has passed the record")]
        driver.end()
        assert [(row["count"], row["at"]) for row in driver.rows("alerts") if row["said"] == "over"] == [(4, at(60)), (2, at(120))]
        assert driver.state()[0]["rows"] == 0
        counts = {step["step"]: step for step in driver.accounting()}
        assert (counts["records.process"]["in"], counts["records.process"]["out"], counts["records.process"]["late"]) == (7, 6, 1)


def test_what_a_function_raises_for_an_event_goes_to_the_dead_letters_and_leaves_no_trace() -> None:
    app = Declaration("sprees")
    app.view("alerts", sprees(app), key=["key", "said", "at"])
    with TestDriver(app) as driver:
        driver.send("records", sent([0, 1, 2, 3], [1, 1, None, 1]))
        driver.end()
        (letter,) = driver.dead_letters("records")
        assert letter["step"] == "records.process"
        assert letter["reason"].startswith("ValueError: no value at 12:00:02 (test_process_in_apps.py:")
        assert (letter["partition"], letter["offset"]) == (0, 2)
        assert '"value":null' in letter["record"]
        assert [(row["said"], row["count"]) for row in driver.rows("alerts")] == [("over", 3), ("three", 3)]
        (step,) = [step for step in driver.accounting() if step["step"] == "records.process"]
        assert (step["in"], step["out"], step["dead_letter"]) == (4, 3, 1)


WRONG: list[tuple[str, Callable[..., Any], str]] = [
    ("a value of another type", lambda event, state: setattr(state, "count", "many"), "state count is int, not 'many'"),
    ("a value too large", lambda event, state: setattr(state, "count", 2**31), "state count is int, not 2147483648"),
    ("a state that was not declared", lambda event, state: setattr(state, "total", 1), "no attribute 'total'"),
    ("a column that was not declared", lambda event: {"text": 1}, "returns= has no column 'text'"),
    ("a timer without on_timer", lambda event, state, timers: timers.after("1s"), "no on_timer"),
    ("no row at all", lambda event: 5, "'int' object is not iterable"),
]


@pytest.mark.parametrize(("function", "reason"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_does_not_fit_what_was_declared_is_a_dead_letter(function: Callable[..., Any], reason: str) -> None:
    app = Declaration("wrong")
    app.view("all", records(app).process(function, by="key", state="count int", ttl="1 hour"), key="key")
    with TestDriver(app) as driver:
        driver.send("records", sent([0]))
        driver.end()
        assert reason in driver.dead_letters("records")[0]["reason"]
        assert driver.state()[0]["rows"] == 0


def test_a_timer_that_fails_is_a_dead_letter_of_its_own() -> None:
    app = Declaration("late")
    stream = records(app).process(
        lambda event, state, timers: timers.after("1s", "soon"), by="key", state="count int", on_timer=lambda timer: 1 / 0, ttl="1 hour"
    )
    app.view("all", stream, key="key")
    with TestDriver(app) as driver:
        driver.send("records", sent([0]))
        driver.end()
        (letter,) = driver.dead_letters("records")
        assert letter["step"] == "records.process.timers"
        assert letter["record"] == '{"key":"a","timer":"soon","timer_at":"2026-01-01T12:00:01Z"}'


@pytest.mark.parametrize("seed", seeds(2))
def test_arrival_epochs_shards_and_restarts_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    rows = [{"key": chance.choice("abc"), "value": second, "at": at(second)} for second in range(0, 400, 3)]
    found = []
    for epochs, shards in ((1, 1), (4, 2), (13, 3)):
        app = Declaration("sprees")
        windows = sprees(app).window(tumbling("1 minute"), by="key").agg(alerts="count(*)", most="max(count)", last="max(at)")
        app.view("alerts", windows)
        arrived = sorted(rows, key=lambda row: row["at"] + timedelta(seconds=chance.uniform(0, 10)))
        size = -(-len(rows) // epochs)
        with TestDriver(app, shards=shards) as driver:
            for first in range(0, len(rows), size):
                driver.send("records", arrived[first : first + size])
                driver.restart()
            driver.end()
            found.append(driver.rows("alerts"))
    assert found[0]
    assert found[0] == found[1] == found[2]


def test_quiet_keys_are_forgotten_over_an_hour() -> None:
    app = Declaration("bound")
    app.view("counts", records(app).process(counted, by="value", state="count int", ttl="5 minutes"), key="value")
    with TestDriver(app, shards=1) as driver:
        most = 0
        for minute in range(0, 60, 2):
            driver.send(
                "records", [{"key": "a", "value": minute * 10 + n, "at": START + timedelta(minutes=minute + n // 10)} for n in range(20)]
            )
            most = max(most, driver.state()[0]["rows"])
        assert most <= 8 * 10


def counted(event: Any, state: Any) -> Any:
    state.count = (state.count or 0) + 1
    return event


def results(app: Declaration) -> Stream:
    return records(app).group("key", ttl=None).agg(n="count(*)")


REFUSED: dict[str, Callable[[Declaration], object]] = {
    "has no ttl": lambda app: records(app).process(counted, by="key", state="count int"),
    "has no key": lambda app: records(app).process(counted, by=()),
    "has a column 'key'": lambda app: records(app).process(counted, by="key", state="key int", ttl=None),
    "has a column 'clear'": lambda app: records(app).process(counted, by="key", state="clear int", ttl=None),
    "whose results change": lambda app: results(app).process(counted, by="key", state="count int", ttl=None),
    "order='any' is not known": lambda app: records(app).process(counted, by="key", order="any"),
    "has no event time": lambda app: app.stream("plain", "key string").process(counted, by="key", state="count int", ttl=None),
    "'count' is not a type": lambda app: records(app).process(counted, by="key", state="n count", ttl=None),
}


@pytest.mark.parametrize("fact", REFUSED)
def test_what_cannot_work_is_refused_when_declared(fact: str) -> None:
    with pytest.raises(HeadraceError, match=fact):
        REFUSED[fact](Declaration("refused"))


def test_without_event_time_events_are_taken_as_they_come() -> None:
    app = Declaration("plain")
    stream = app.stream("plain", "key string, value int", key="key")
    app.view(
        "counts",
        stream.process(counting, by="key", state="count int", returns="key string, count int", order="arrival", ttl=None),
        key="key",
    )
    with TestDriver(app) as driver:
        driver.send("plain", [{"key": "a", "value": 1}, {"key": None, "value": 2}])
        driver.restart()
        driver.send("plain", [{"key": "a", "value": 3}])
        assert driver.rows("counts") == [{"key": "a", "count": 2}, {"key": None, "count": 1}]


def counting(event: Any, state: Any) -> dict[str, Any]:
    state.count = (state.count or 0) + 1
    return {"key": event["key"], "count": state.count}


def test_the_state_may_have_a_column_of_any_plain_name() -> None:
    def remember(event: Any, state: Any) -> dict[str, Any]:
        state.values = [*(state.values or []), event.value]
        state.become = "more" if state.become else "one"
        return {"key": event.key, "values": state.values, "said": state.become}

    app = Declaration("names")
    kept = records(app).process(
        remember, by="key", state="values array<int>, become string", returns="key string, values array<int>, said string", ttl="1 day"
    )
    app.view("kept", kept, key="key")
    with TestDriver(app) as driver:
        driver.send("records", [{"key": "a", "value": value, "tag": None, "at": at(value)} for value in (1, 2)])
        driver.end()
        assert driver.rows("kept") == [{"key": "a", "values": [1, 2], "said": "more"}]
