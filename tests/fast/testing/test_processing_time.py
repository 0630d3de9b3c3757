"""Windows by the wall clock: what came in which minute, whatever the event times, the shards and the crashes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.api.declaration import Declaration
from headrace.api.windows import hopping, processing_time
from headrace.core.remarks import PlanWarning
from headrace.testing.driver import TestDriver
from tests.support.examples import examples

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
steps = st.lists(st.tuples(st.integers(0, 45), st.lists(st.sampled_from("abc"), max_size=4)), min_size=1, max_size=8)


def declared() -> Declaration:
    app = Declaration("clocked")
    clicks = app.stream("clicks", "page string")
    app.view("tens", clicks.window(processing_time("10 seconds"), by="page").agg(n="count(*)"))
    app.view("hops", clicks.where("page < 'c'").window(processing_time(hopping("30 seconds", every="10 seconds"))).agg(n="count(*)"))
    return app


@pytest.mark.filterwarnings("ignore::headrace.core.remarks.PlanWarning")
@given(steps, st.booleans())
@settings(max_examples=examples(30))
def test_a_record_is_counted_when_it_comes(story: list[tuple[int, list[str]]], crashes: bool) -> None:
    driver, now = TestDriver(declared(), starts_at=NOON), 0
    tens: Counter[tuple[str, int]] = Counter()
    hops: Counter[int] = Counter()
    for pause, pages in story:
        driver.wait(timedelta(seconds=pause))
        now += pause
        driver.send("clicks", [{"page": page} for page in pages])
        for page in pages:
            tens[page, now // 10 * 10] += 1
            if page < "c":
                hops.update(range(now // 10 * 10 - 20, now + 1, 10))
        if crashes:
            driver.restart()
        shown = {(row["page"], seconds(row["window_start"])): row["n"] for row in driver.rows("tens")}
        assert shown == {place: count for place, count in tens.items() if place[1] + 10 <= now}
    driver.end()
    assert {seconds(row["window_start"]): row["n"] for row in driver.rows("hops")} == hops
    assert all(step["rows"] == 0 for step in driver.state())
    assert all(step["in"] == step["out"] + step["filtered"] for step in driver.accounting())


def seconds(moment: datetime) -> int:
    return (moment - NOON) // timedelta(seconds=1)


def test_it_is_warned_of_at_the_line_that_asks_for_it() -> None:
    with pytest.warns(PlanWarning, match="a replay") as said:
        declared().plan()
    assert [warning.filename for warning in said] == [__file__, __file__]
