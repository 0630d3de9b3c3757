"""Late records of joins: the reason that their topic, the accounting and `headrace why` show."""

from __future__ import annotations

from typing import Any

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at


def valued() -> TestDriver:
    app = Declaration("market")
    timed: dict[str, Any] = {"watermark": bounded("10s", idle="1 minute")}
    trades = app.stream("trades", "id int, product string, ordered_at timestamp, at timestamp", time="at", **timed)
    prices = app.stream("prices", "product string, price int, since timestamp", time="since", **timed).to_table("product")
    joined = trades.join(prices.as_of("ordered_at", history="7 minutes"), on="product")
    app.sink(joined, LogTopic("valued"), name="valued")
    return TestDriver(app)


def trade(number: int, ordered: float, second: float) -> dict[str, Any]:
    return {"id": number, "product": "pen", "ordered_at": at(ordered), "at": at(second)}


def test_a_record_beyond_the_history_is_late_because_the_versions_of_its_time_are_not_kept() -> None:
    beyond = "the versions of 'prices.table' at its 'ordered_at' are no longer kept (history of 7 minutes): give as_of() a longer history"
    with valued() as driver:
        driver.send("prices", [{"product": "pen", "price": 5, "since": at(1_000)}])
        driver.send("trades", [trade(1, 1_000, 1_000)])
        driver.send("trades", [trade(2, 500, 1_001), trade(3, 600, 1_001)])
        assert [(row["id"], row["reason"]) for row in driver.late("trades")] == [(2, beyond)]
        assert driver.reasons()["trades.join"] == {"late": beyond}


def test_a_version_behind_the_watermark_is_late_because_that_has_passed_it() -> None:
    with valued() as driver:
        driver.send("trades", [trade(1, 1_000, 1_000)])
        driver.send("prices", [{"product": "pen", "price": 5, "since": at(1_000)}])
        driver.send("prices", [{"product": "pen", "price": 4, "since": at(900)}])
        assert [(row["price"], row["reason"]) for row in driver.late("prices")] == [(4, "the watermark has passed the record")]


def test_a_record_beyond_the_history_after_the_end_is_late_because_the_input_has_ended() -> None:
    with valued() as driver:
        driver.send("trades", [trade(1, 1_000, 1_000)])
        driver.end()
        driver.send("trades", [trade(2, 500, 1_001)])
        assert [row["reason"] for row in driver.late("trades")] == ["the input was said to have ended"]
