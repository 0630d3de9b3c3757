"""The order of records in patterns: event time, then the columns that are named, then partition and offset."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.core.errors import HeadraceError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at


def test_ties_are_told_by_offset_and_a_disorder_within_the_bound_changes_nothing() -> None:
    app = Declaration("ties")
    letters = app.stream("letters", "key string, letter string, at timestamp", key="key", time="at", watermark=bounded("5s"))
    app.sink(
        letters.match(by="key", pattern="A B", within="1 minute", define={"A": "letter = 'a'", "B": "letter = 'b'"}),
        LogTopic("out"),
        name="out",
    )
    with TestDriver(app) as driver:
        rows = [("b", 3), ("a", 0), ("a", 2), ("b", 0)]
        driver.send("letters", [{"key": "k", "letter": letter, "at": at(0) + timedelta(seconds=second)} for letter, second in rows])
        driver.end()
        assert [[one["offset"] for one in row["evidence"]] for row in driver.rows("out")] == [[1, 3], [2, 0]]


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        ("int", [None, -1, 3]), ("double", [None, -1.5, float("nan")]), ("string", [None, "B", "a"]), ("boolean", [None, False, True]),
        ("date", [None, date(2025, 1, 1), date(2026, 1, 1)]), ("decimal(5,2)", [None, Decimal("-1.5"), Decimal(3)]),
        ("binary", [None, b"\x01", b"\xff"]), ("timestamp", [None, at(-1), at(9)]),
    ],
)  # fmt: skip
def test_records_of_one_time_are_in_the_order_of_the_columns_that_are_named(kind: str, ascending: list[Any]) -> None:
    for arrival in permutations(range(3)):
        app = Declaration("ties")
        stream = app.stream("ties", f"key string, n int, rank {kind}, at timestamp", key="n", time="at", watermark=bounded("5s"))
        found = stream.match(
            by="key", pattern="A{5}", order=["rank", "n"], within="1 hour", after="next row", measures={"said": "collect_list(n)"}
        )
        app.sink(found, LogTopic("out"), name="out")
        driver = TestDriver(app, partitions=2, shards=2)
        driver.send("ties", [{"key": "k", "n": 8, "at": at(0)}, {"key": "k", "n": 7, "at": at(0)}])
        driver.send("ties", [{"key": "k", "n": place, "rank": ascending[place], "at": at(1)} for place in arrival])
        driver.advance(at(20))
        driver.restart()
        driver.send("ties", [{"key": "k", "n": 9, "at": at(30)}])
        driver.end()
        assert [row["said"] for row in driver.rows("out")] == [[7, 8, 0, 1, 2], [8, 0, 1, 2, 9]]


def test_an_order_by_a_column_with_parts_is_refused() -> None:
    app = Declaration("parts")
    stream = app.stream("rows", "key string, parts array<int>, at timestamp", key="key", time="at", watermark=bounded("0s"))
    with pytest.raises(HeadraceError, match="which has parts"):
        stream.match(by="key", pattern="A", within="1 hour", order="parts")
    with pytest.raises(HeadraceError, match="no such column"):
        stream.match(by="key", pattern="A", within="1 hour", order="rank")
