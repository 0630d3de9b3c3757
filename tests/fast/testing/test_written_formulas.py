"""Formulas over aggregates and matched rows: values of many rows stand wherever a column may, and are shown as they were written."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import PlanError
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

# Names of ours for what the user wrote.
OURS = re.compile("_match|_a[0-9a-f]{16}|_aggregate")


def matched(define: dict[str, str] | None = None, **measures: str) -> TestDriver:
    """A row of A with 0 and one of B with 1, as a match."""
    app = Declaration("matched")
    rows = app.stream("rows", "k string, n int, s string, at timestamp", key="k", time="at", watermark=bounded("0s"))
    found = rows.match(by="k", pattern="A B", define=define or {}, within="1 minute", measures=measures)
    app.sink(found, LogTopic("out"), name="out")
    return sent(app)


def aggregated(**outputs: str) -> TestDriver:
    """The same rows, in one window."""
    app = Declaration("aggregated")
    rows = app.stream("rows", "k string, n int, s string, at timestamp", key="k", time="at", watermark=bounded("0s"))
    app.view("out", rows.window(tumbling("1 minute"), by="k").agg(**outputs))
    return sent(app)


def sent(app: Declaration) -> TestDriver:
    driver = TestDriver(app)
    driver.send("rows", [{"k": "k", "n": n, "s": "xy"[n], "at": at(n)} for n in (0, 1)])
    driver.end()
    return driver


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("case A.n when 0 then 'none' when 1 then 'one' end", "none"),
        ("case count(*) when 1 then 'one' when 2 then 'two' end", "two"),
        ("last(case B.n when 0 then 'none' when 1 then 'one' end)", "one"),
        ("sum(case A.n when 0 then 5 when 1 then 6 end)", 5),
        ("struct(A.n, B.s as last, count(*))", {"n": 0, "last": "y", "col3": 2}),
        ("(first(n), B.n)", {"col1": 0, "n": 1}),
    ],
)
def test_values_of_a_match_stand_wherever_columns_may(measure: str, wanted: Any) -> None:
    assert [row["found"] for row in matched(found=measure).rows("out")] == [wanted]


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ("case sum(n) when 1 then 'one' when 2 then 'two' end", "one"),
        ("struct(sum(n), max(s) as last)", {"col1": 1, "last": "y"}),
        ("(min(n), count(*))", {"col1": 0, "col2": 2}),
    ],
)
def test_aggregates_stand_wherever_columns_may(output: str, wanted: Any) -> None:
    assert [row["found"] for row in aggregated(found=output).rows("out")] == [wanted]


@pytest.mark.parametrize(
    ("define", "measure", "reason"),
    [
        ({}, "1 / A.n", "division by zero in 1 / A.n; try_divide(1, A.n) gives null instead"),
        ({}, "cast(last(B.s) as int)", "text that is not an int in last(B.s)"),
        ({"B": "n / prev(n) > 1"}, "1", "division by zero in n / prev(n); try_divide(n, prev(n)) gives null instead"),
        ({"B": "10 / sum(A.n) > 1"}, "1", "division by zero in 10 / sum(A.n); try_divide(10, sum(A.n)) gives null instead"),
    ],
)
def test_a_value_of_a_match_that_cannot_be_computed_is_told_as_it_was_written(define: dict[str, str], measure: str, reason: str) -> None:
    assert [row["reason"] for row in matched(define, found=measure).dead_letters("rows")] == [reason]


def test_an_aggregate_that_cannot_be_computed_on_is_told_as_it_was_written() -> None:
    (told,) = aggregated(found="sum(n) / (COUNT(*) - 2)").dead_letters("rows")
    assert told["reason"] == "division by zero in sum(n) / (COUNT(*) - 2); try_divide(sum(n), COUNT(*) - 2) gives null instead"


@pytest.mark.parametrize(
    ("text", "marked", "hint"),
    [
        ("not A.n", "not A.n", None),
        ("count(*) > 1 and upper(A.s, 3) = 'X'", "upper(A.s, 3)", None),
        ("last(A.n) + nn > 1", "nn", "did you mean 'n'? columns there: k, n, s, at"),
        ("last(A.nn) > 1", "A.nn", "did you mean 'n'? columns there: k, n, s, at"),
        ("AA.n > 1", "AA.n", "did you mean 'A'? variables there: A, B"),
        ("sum(C.n) > 1", "C.n", "variables there: A, B"),
        ("lag(n) > 1", "lag(n)", "prev(amount) is that of the previous row, in define"),
    ],
)
def test_a_formula_over_matched_rows_that_is_refused_is_shown_as_it_was_written(text: str, marked: str, hint: str | None) -> None:
    with pytest.raises(PlanError) as refused:
        matched(found=text)
    line = f"  {text}\n  {' ' * text.index(marked)}{'^' * len(marked)}"
    assert line in str(refused.value)
    assert OURS.search(str(refused.value)) is None
    assert refused.value.hint == hint


@pytest.mark.parametrize("text", ["not sum(n)", "upper(max(s), 3)", "array(sum(n)) + 1"])
def test_a_formula_over_aggregates_that_is_refused_is_shown_as_it_was_written(text: str) -> None:
    with pytest.raises(PlanError) as refused:
        aggregated(found=text)
    assert f"  {text}\n" in str(refused.value)
    assert OURS.search(str(refused.value)) is None
