"""Examples from the documents of Oracle's and Flink's MATCH_RECOGNIZE, with the results that these state."""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver

BEGIN = datetime(2011, 4, 1, 10, tzinfo=UTC)
# One price a day, from April 1st on.
ORACLE = (12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22)
# One price a second.
FLINK_DROP = (12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)
FLINK_AVERAGE = (12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)
SLOPES = {"DOWN": "price < prev(price)", "UP": "price > prev(price)"}


def matched(prices, step, **pattern):
    """The matches in one price after the other, each after a step of time; moments as numbers of steps."""
    app = Declaration("ticker")
    ticker = app.stream("ticker", "symbol string, price int, at timestamp", key="symbol", time="at", watermark=bounded("0 seconds"))
    app.sink(ticker.match(by="symbol", within="60 days", **pattern), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("ticker", [{"symbol": "ACME", "price": price, "at": BEGIN + number * step} for number, price in enumerate(prices)])
        driver.end()
        rows = driver.rows("out")
    return [
        tuple(
            int((value - BEGIN) / step) if isinstance(value, datetime) else value for name, value in row.items() if name in shown(pattern)
        )
        for row in rows
    ]


def shown(pattern):
    return ("at", "price", *pattern["measures"]) if pattern.get("rows") == "all" else tuple(pattern["measures"])


DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def test_a_v_shape_has_one_row_for_each_match():
    found = matched(
        ORACLE, DAY, pattern="STRT DOWN+ UP+", define=SLOPES, after="last UP",
        measures={"start": "STRT.at", "bottom": "last(DOWN.at)", "end": "last(UP.at)"},
    )  # fmt: skip
    assert found == [(4, 5, 9), (9, 11, 12), (13, 15, 17)]


def test_a_v_shape_has_a_row_for_each_row_of_a_match_with_the_final_values():
    found = matched(
        ORACLE, DAY, pattern="STRT DOWN+ UP+", define=SLOPES, after="last UP", rows="all",
        measures={"number": "match_number()", "variable": "classifier()", "bottom": "final last(DOWN.at)", "so_far": "running count(*)"},
    )  # fmt: skip
    assert found == [
        (25, 4, 1, "STRT", 5, 1), (12, 5, 1, "DOWN", 5, 2), (15, 6, 1, "UP", 5, 3),
        (20, 7, 1, "UP", 5, 4), (24, 8, 1, "UP", 5, 5), (25, 9, 1, "UP", 5, 6),
        (25, 9, 2, "STRT", 11, 1), (19, 10, 2, "DOWN", 11, 2), (15, 11, 2, "DOWN", 11, 3), (25, 12, 2, "UP", 11, 4),
        (25, 13, 3, "STRT", 15, 1), (14, 14, 3, "DOWN", 15, 2), (12, 15, 3, "DOWN", 15, 3),
        (14, 16, 3, "UP", 15, 4), (24, 17, 3, "UP", 15, 5),
    ]  # fmt: skip


def test_a_w_shape_is_found_once():
    found = matched(
        ORACLE, DAY, pattern="STRT DOWN+ UP+ DOWN+ UP+", define=SLOPES, after="last UP",
        measures={"start": "STRT.at", "end": "last(UP.at)"},
    )  # fmt: skip
    assert found == [(4, 12)]


@pytest.mark.parametrize("after", ["last UP", "past last row"])
def test_a_drop_of_price_ends_with_the_first_row_above_the_bottom(after):
    found = matched(
        FLINK_DROP, SECOND, pattern="START_ROW DOWN+ UP", after=after,
        define={
            "DOWN": "(last(DOWN.price, 1) is null and DOWN.price < START_ROW.price) or DOWN.price < last(DOWN.price, 1)",
            "UP": "UP.price > last(DOWN.price, 1)",
        },
        measures={"start": "START_ROW.at", "bottom": "last(DOWN.at)", "end": "last(UP.at)"},
    )  # fmt: skip
    assert found == [(4, 7, 8)]


def test_rows_are_taken_while_their_average_is_below_a_bound():
    found = matched(
        FLINK_AVERAGE, SECOND, pattern="A+ B", define={"A": "avg(A.price) < 15"},
        measures={"start": "first(A.at)", "end": "last(A.at)", "average": "avg(A.price)"},
    )  # fmt: skip
    assert found == [(0, 3, 14.5), (5, 10, 13.5)]
