"""The state of windows falls back to its bound: an hour of event time, quiet keys, and nothing left at the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headrace.api.aggregating import Results
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, calendar, count_window, hopping, session, sliding, tumbling
from headrace.testing.driver import TestDriver
from tests.support.streams import SCHEMA, START

Declared = Callable[[Stream], Results]
COUNTED = {"records": "count(*)", "total": "sum(value)"}


def windowed(window: object, **emit: str) -> Declared:
    return lambda stream: stream.window(window, by="key").agg(**COUNTED).emit(**emit)  # type: ignore[arg-type]


# The most rows that ten keys may have, each with an event every six seconds.
KINDS: dict[str, tuple[Declared, int]] = {
    "tumbling": (windowed(tumbling("1 minute")), 20),
    "tumbling, with panes": (windowed(tumbling("1 minute"), early="20s", until="3 minutes"), 70),
    "tumbling, with parts": (windowed(tumbling("1 minute"), early="20s", until="3 minutes", mode="discarding"), 70),
    "hopping, with panes": (windowed(hopping("3 minutes", every="1 minute"), early="20s"), 50),
    "sessions": (windowed(session("30 seconds"), early="20s", until="1 minute"), 10),
    "calendar": (windowed(calendar("1 hour", zone="Asia/Kolkata"), early="1 minute"), 20),
    "sliding": (windowed(sliding("1 minute"), until="1 minute"), 300),
    "count": (lambda stream: stream.window(count_window(7, every=3), by="key").agg(**COUNTED), 100),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_hour_of_event_time_leaves_no_more_than_the_open_windows(kind: str) -> None:
    declare, most = KINDS[kind]
    app = Declaration("bound")
    stream = app.stream("records", SCHEMA, key="key", time="at", watermark=bounded("10s"))
    app.view("results", declare(stream))
    sizes = []
    with TestDriver(app, shards=1) as driver:
        for minute in range(0, 60, 3):
            moments = [START + timedelta(minutes=minute, seconds=second) for second in range(0, 180, 6)]
            driver.send("records", [{"key": f"k{key}", "value": key, "at": at} for at in moments for key in range(10)])
            (size,) = driver.state()
            sizes.append((size["rows"], size["bytes"]))
        assert max(rows for rows, _ in sizes) <= most
        # What chunks hold of windows long gone goes with them, too.
        assert max(stored for _, stored in sizes[10:]) <= 2 * max(stored for _, stored in sizes[:10])
        driver.send("records", [{"key": "last", "value": 0, "at": START + timedelta(hours=3)}])
        driver.end()
        assert driver.state()[0]["rows"] == 0
