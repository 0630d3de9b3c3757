"""Examples from the documents of Oracle's, Flink's and Snowflake's MATCH_RECOGNIZE, with the results that these state."""

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


@pytest.mark.parametrize(("quantifier", "found"), [("*", [(11, 14, 16)]), ("*?", [(11, 12, 13), (14, None, 16)])])
def test_a_greedy_quantifier_takes_more_rows_than_a_reluctant_one(quantifier, found):
    taken = matched(
        (10, 11, 12, 13, 14, 16), SECOND, pattern=f"A B{quantifier} C",
        define={"A": "price > 10", "B": "price < 15", "C": "price > 12"},
        measures={"first": "A.price", "between": "last(B.price)", "last": "C.price"},
    )  # fmt: skip
    assert taken == found


@pytest.mark.parametrize(
    ("prices", "found"),
    [
        ((50, 36, 39, 42, 30, 47, 71, 80, 75, 63), [(1, 0, 3, 4, 1, 2), (2, 3, 7, 5, 1, 3)]),
        ((89, 24, 37, 63, 65, 56, 50, 54, 30, 32), [(1, 0, 4, 5, 1, 3), (2, 4, 7, 4, 2, 1), (3, 7, 9, 3, 1, 1)]),
    ],
)
def test_v_shapes_share_the_row_between_them(prices, found):
    taken = matched(
        prices, DAY, pattern="row_before_decrease row_with_decrease+ row_with_increase+", after="last row_with_increase",
        define={"row_with_decrease": "price < prev(price)", "row_with_increase": "price > prev(price)"},
        measures={
            "number": "match_number()", "start": "first(at)", "end": "last(at)", "rows_in_sequence": "count(*)",
            "decreases": "count(row_with_decrease.*)", "increases": "count(row_with_increase.*)",
        },
    )  # fmt: skip
    assert taken == found


EVENTS = {
    "Mary": (1, 11, 23, 34, 44, 53, 63), "Richard": (3, 13, 23, 33, 43, 54, 63), "Sam": (2, 12, 22, 32, 43, 47, 48, 59, 60, 68)
}  # fmt: skip
SESSIONS = {
    "Mary": [(1, 1, 2, 10), (2, 23, 1, 0), (3, 34, 4, 29)], "Richard": [(1, 3, 5, 40), (2, 54, 2, 9)],
    "Sam": [(1, 2, 4, 30), (2, 43, 3, 5), (3, 59, 3, 9)],
}  # fmt: skip


@pytest.mark.parametrize("user", EVENTS)
def test_a_session_ends_where_the_next_event_comes_too_late(user):
    app = Declaration("sessions")
    events = app.stream("events", "user string, tick int, at timestamp", key="user", time="at", watermark=bounded("0 seconds"))
    found = events.match(
        by="user", pattern="strt sess*", define={"sess": "tick - prev(tick) <= 10"}, within="1 hour",
        measures={
            "session": "match_number()", "start_tick": "first(tick)", "events": "count(*)", "duration": "last(tick) - first(tick)"
        },
    )  # fmt: skip
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("events", [{"user": user, "tick": tick, "at": BEGIN + tick * SECOND} for tick in EVENTS[user]])
        driver.end()
        rows = driver.rows("out")
    assert [(row["session"], row["start_tick"], row["events"], row["duration"]) for row in rows] == SESSIONS[user]


# Kind, receiver and amount of a transfer on a day: three small ones in thirty days, the last two to different receivers, and then a large
# one within ten days.
TRANSFERS = [
    (0, "deposit", None, 1_000_000), (1, "transfer", "Bob", 1_000), (4, "transfer", "Bob", 1_500), (9, "transfer", "Allen", 1_500),
    (18, "transfer", "Tim", 1_200), (19, "transfer", "Tim", 1_000_000), (26, "deposit", None, 500_000),
]  # fmt: skip


def test_a_large_transfer_after_small_ones_is_suspicious():
    app = Declaration("transfers")
    events = app.stream(
        "events",
        "user string, kind string, receiver string, amount int, at timestamp",
        key="user",
        time="at",
        watermark=bounded("0 seconds"),
    )
    found = events.where("kind = 'transfer'").match(
        by="user", pattern="X{3,} Y", within="40 days",
        define={
            "X": "amount < 2000 and unix_timestamp(at) - unix_timestamp(first(X.at)) < 30 * 86400",
            "Y": "amount >= 1000000 and unix_timestamp(at) - unix_timestamp(last(X.at)) < 10 * 86400",
        },
        where="count(distinct X.receiver) > 1",
        measures={"first_at": "first(X.at)", "last_at": "Y.at", "amount": "Y.amount"},
    )  # fmt: skip
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        sent = [
            {"user": "John", "kind": kind, "receiver": to, "amount": amount, "at": BEGIN + day * DAY} for day, kind, to, amount in TRANSFERS
        ]
        driver.send("events", sent)
        driver.end()
        (row,) = driver.rows("out")
    assert (row["first_at"], row["last_at"], row["amount"]) == (BEGIN + DAY, BEGIN + 19 * DAY, 1_000_000)
