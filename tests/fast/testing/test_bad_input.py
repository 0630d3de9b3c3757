"""Records that no step can use are dead letters with their reason and place; the stream goes on and every record is accounted for."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, session, tumbling
from headrace.core.columns.schema import TIMESTAMP
from headrace.core.errors import SchemaError
from headrace.testing.driver import TestDriver

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z
YEAR_290000 = 9_089_000_000_000_000_000  # the last century that 64 bits of microseconds reach is 292277


def app(**columns: str) -> Declaration:
    declared = Declaration("payments")
    payments = declared.stream("payments", "card string, amount double, text string, at timestamp", time="at", watermark=bounded("10s"))
    made = payments.with_columns(**columns) if columns else payments
    declared.view("per_minute", made.window(tumbling("1 minute")).agg(payments="count(*)", total="sum(amount)"))
    return declared


def table(*rows: tuple[float | None, str, int | None]) -> pa.Table:
    amounts, texts, times = zip(*rows, strict=True)
    return pa.table(
        {
            "card": pa.array(["c"] * len(rows)),
            "amount": pa.array(amounts, pa.float64()),
            "text": pa.array(texts),
            "at": pa.array(times, pa.int64()).cast(TIMESTAMP),
        }
    )


def test_a_record_without_a_time_or_from_the_year_290000_is_a_dead_letter() -> None:
    with TestDriver(app(), starts_at="2026-01-01T12:00:00Z") as driver:
        driver.send("payments", table((1.0, "a", NOON), (2.0, "b", None), (4.0, "c", YEAR_290000), (8.0, "d", NOON + 1)))
        driver.end()
        assert [(row["payments"], row["total"]) for row in driver.rows("per_minute")] == [(2, 9.0)]
        letters = driver.dead_letters("payments")
        assert [(row["offset"], row["reason"]) for row in letters] == [
            (1, "no event time in at"),
            (2, "at is more than 1 hour (max_ahead) later than the wall clock"),
        ]
        (source, *_) = driver.accounting()
        assert (source["in"], source["out"], source["dead_letter"]) == (4, 2, 2)


@pytest.mark.parametrize(
    ("expression", "bad"),
    [
        ("100 / amount", (0.0, "x", NOON)),
        ("cast(amount as int)", (math.nan, "x", NOON)),
        ("cast(amount as int)", (1e300, "x", NOON)),
        ("cast(text as int)", (1.0, "poison", NOON)),
    ],
)
def test_a_record_that_an_expression_cannot_take_is_a_dead_letter(expression: str, bad: tuple[float, str, int]) -> None:
    with TestDriver(app(made=expression)) as driver:
        driver.send("payments", table((1.0, "7", NOON), bad, (2.0, "8", NOON)))
        driver.end()
        assert [(row["payments"], row["total"]) for row in driver.rows("per_minute")] == [(2, 3.0)]
        (letter,) = driver.dead_letters("payments")
        assert (letter["step"], letter["offset"]) == ("payments.with_columns", 1)
        assert letter["reason"]
        step = next(row for row in driver.accounting() if row["step"] == "payments.with_columns")
        assert (step["in"], step["out"], step["dead_letter"]) == (3, 2, 1)


def test_a_row_of_a_table_that_an_expression_cannot_take_is_one_dead_letter_also_when_it_is_replaced() -> None:
    declared = Declaration("prices")
    latest = declared.stream("prices", "item string, price string").to_table("item")
    declared.view("numbers", latest.with_columns(price="cast(price as int)"))
    declared.view("total", latest.group("item", ttl=None).agg(total="sum(cast(price as int))"))
    with TestDriver(declared) as driver:
        for price in ("3", "three", "four", "5"):
            driver.send("prices", [{"item": "a", "price": price}])
        assert driver.rows("numbers") == [{"item": "a", "price": 5}]
        assert driver.rows("total") == [{"item": "a", "total": 5}]
        counts = {row["step"]: row for row in driver.accounting()}
        for step in ("prices.table.with_columns", "prices.table.group"):
            bad = [json.loads(row["record"]) for row in driver.dead_letters("prices") if row["step"] == step]
            assert bad == [{"item": "a", "price": "three"}, {"item": "a", "price": "four"}]
            assert [counts[step][end] for end in ("in", "out", "filtered", "dead_letter")] == [7, 3, 2, 2]


def test_a_result_that_is_a_dead_letter_is_told_with_its_key_whatever_that_is_called() -> None:
    declared = Declaration("shares")
    sales = declared.stream("sales", "_shop string, pieces int")
    declared.view("shares", sales.group("_shop", ttl=None).agg(share="100 / sum(pieces)"))
    with TestDriver(declared) as driver:
        driver.send("sales", [{"_shop": "a", "pieces": 0}])
        (letter,) = driver.dead_letters("sales")
        assert (letter["step"], json.loads(letter["record"])) == ("sales.group.results", {"_shop": "a"})


def test_a_nan_that_is_only_summed_is_no_mistake() -> None:
    with TestDriver(app()) as driver:
        driver.send("payments", table((1.0, "a", NOON), (math.nan, "b", NOON)))
        driver.end()
        (row,) = driver.rows("per_minute")
        assert math.isnan(row["total"])
        assert driver.dead_letters("payments") == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"card": "c", "cost": 1.0}, "it has no column 'cost'"),
        ({"card": 7}, "column 'card' of record 2 of 2: 7 "),
        ({"card": "c", "amount": "much"}, "column 'amount' of record 2 of 2: 'much' "),
        ({"card": "c", "at": 1767268800.5}, "column 'at' of record 2 of 2: 1767268800.5 "),
        ("card", "'card' is not a dictionary of columns"),
        (5, "5 is not a dictionary of columns"),
    ],
)
def test_a_record_that_does_not_fit_the_schema_is_refused_whole_with_its_column_and_number(row: Any, said: str) -> None:
    with TestDriver(app()) as driver:
        with pytest.raises(SchemaError, match=re.escape(f"does not fit stream 'payments': {said}")):
            driver.send("payments", [{"card": "c", "amount": 1.0, "text": "a", "at": "2026-01-01T12:00:00Z"}, row])
        driver.end()
        assert driver.rows("per_minute") == []


@pytest.mark.parametrize("row", [{"n": 1.5, "m": 1}, {"n": Decimal("0.1"), "m": 1}, {"n": 1}, {"n": 1, "m": None}])
def test_no_value_is_changed_or_made_up_to_fit_a_column(row: dict[str, object]) -> None:
    declared = Declaration("numbers")
    declared.view("latest", declared.stream("numbers", "n int, m int not null").to_table("n"))
    with TestDriver(declared) as driver:
        with pytest.raises(SchemaError, match="does not fit stream 'numbers'"):
            driver.send("numbers", [row])
        driver.send("numbers", [{"n": 2.0, "m": 3}])
        assert driver.rows("latest") == [{"n": 2, "m": 3}]


def test_a_streams_own_columns_are_not_taken_for_those_of_a_late_record() -> None:
    declared = Declaration("again")
    results = declared.stream("results", "window_start timestamp, reason string", time="window_start", watermark=bounded("0s"))
    declared.view("per_hour", results.window(tumbling("1 hour")).agg(results="count(*)"))
    with TestDriver(declared) as driver:
        driver.send("results", [{"window_start": "2026-01-01T12:00:00Z", "reason": "mine"}])
        driver.send("results", [{"window_start": "2026-01-01T10:00:00Z", "reason": "mine too"}])
        (late,) = driver.late("results")
        assert late["reason"] == "mine too"
        assert late["late_reason"] == "every window of the record is closed"
        assert late["window_end"].hour == 11


def test_a_late_record_of_a_union_does_not_lead_bad_results_to_its_own_dead_letters() -> None:
    declared = Declaration("united")
    first, second = (
        declared.stream(name, f"key string, n int, {name} string, at timestamp", time="at", watermark=bounded("0s", idle="1 day"))
        for name in ("first", "second")
    )
    columns = ("key", "n", "at")
    sessions = first.select(*columns).union(second.select(*columns)).window(session("10s"), by="key")
    declared.view("shares", sessions.agg(share="100 / sum(n)"))

    def record(key: str, n: int, second: int) -> dict[str, object]:
        return {"key": key, "n": n, "at": f"2026-01-01T12:{second // 60:02}:{second % 60:02}Z"}

    with TestDriver(declared) as driver:
        # Enough keys that one shares the shard of the late record.
        driver.send("first", [*(record(f"empty {number}", 0, 35) for number in range(20)), record("later", 1, 60)])
        driver.send("second", [record("early", 1, 30)])
        # One epoch: a record that only the state can tell to be late, and the end of sessions whose result cannot be computed.
        driver.send("second", [record("late", 1, 5), record("later", 1, 100)])
        assert [row["key"] for row in driver.late("second")] == ["late"]
        assert driver.dead_letters("second") == []
        reason = "division by zero in 100 / sum(n); try_divide(100, sum(n)) gives null instead"
        assert [row["reason"] for row in driver.dead_letters("first")] == [reason] * 20
