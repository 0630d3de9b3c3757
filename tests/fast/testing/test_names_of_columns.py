"""A column may be called anything: spaces, dots, letters of any script, words of SQL and quotes go through every step."""

from __future__ import annotations

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import perfect, tumbling
from headrace.core.columns.schema import quoted
from headrace.testing.driver import TestDriver


@pytest.mark.parametrize("name", ["the key", "größe µ", "a.b", "select", "x`y", "1", "^a", "名"])
def test_a_column_of_any_name_goes_through_every_step(name: str) -> None:
    app = Declaration("names")
    column = quoted(name)
    records = app.stream("records", f"{column} string, n int, list array<int>, at timestamp", key=name, time="at", watermark=perfect())
    shaped = records.where(f"{column} is not null").with_columns(m="n + 1").explode("list").select("*").key_by(name)
    renamed = shaped.with_columns(**{f"{name} again": f"upper({column})"})
    app.view("windows", renamed.window(tumbling("1 minute"), by=[name, f"{name} again"]).agg(**{f"{name}!": f"max({column})"}))
    app.view("latest", renamed.to_table(name))
    app.view("totals", records.group(name, ttl=None).agg(total="sum(n)"))
    with TestDriver(app, partitions=2) as driver:
        driver.send("records", [{name: "a", "n": 1, "list": [1, 2], "at": "2026-01-01T12:00:00Z"}])
        driver.end()
        (window,) = driver.rows("windows")
        assert (window[name], window[f"{name} again"], window[f"{name}!"]) == ("a", "A", "a")
        assert [(row[name], row["list"]) for row in driver.rows("latest")] == [("a", 2)]
        assert driver.rows("totals") == [{name: "a", "total": 1}]


def test_an_array_is_taken_apart_under_any_name() -> None:
    app = Declaration("names")
    records = app.stream("records", "`x``y` array<int>")
    app.view("counts", records.explode("x`y").group("x`y", ttl=None).agg(n="count(*)"))
    with TestDriver(app) as driver:
        driver.send("records", [{"x`y": [1, 2, 1]}])
        assert driver.rows("counts") == [{"x`y": 1, "n": 2}, {"x`y": 2, "n": 1}]
