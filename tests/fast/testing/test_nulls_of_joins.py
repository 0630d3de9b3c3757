"""Columns that are declared `not null`: behind a join they are so only where no result has a null in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

HOWS = ("inner", "left", "right", "full")
JOINS: dict[str, tuple[tuple[str, ...], Callable[[Stream, Stream, str], Stream]]] = {
    "within": (HOWS, lambda left, right, how: left.join_within(right, on="k", within="5s", how=how)),
    "tables": (HOWS, lambda left, right, how: left.to_table("id").join(right.to_table("rid"), on="k", how=how, ttl=None)),
    "current": (("inner", "left"), lambda left, right, how: left.join(right.to_table("k"), on="k", how=how)),
    "versions": (("inner", "left"), lambda left, right, how: left.join(right.to_table("k").as_of("at", history="1 hour"), on="k", how=how)),
}
CASES = [(kind, how, *nulls) for kind, (hows, _) in JOINS.items() for how in hows for nulls in product([False, True], repeat=2)]


@pytest.mark.parametrize(("kind", "how", "left_null", "right_null"), CASES)
def test_a_column_of_a_join_is_not_null_only_if_no_result_has_a_null_there(kind: str, how: str, left_null: bool, right_null: bool) -> None:
    app = Declaration("nulls")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("10s", idle="1 day")}
    kinds = {True: "string", False: "string not null"}
    left = app.stream("a", f"id int not null, k {kinds[left_null]}, at timestamp not null", **timed)
    right = app.stream("b", f"rid int not null, k {kinds[right_null]}, at timestamp not null", **timed)
    joined = JOINS[kind][1](left, right, how)
    for name, condition in (("out", "true"), ("without", "k is null"), ("with", "k is not null")):
        rows = joined.where(condition)
        _ = app.view(name, rows) if rows.node.changes else app.sink(rows, LogTopic(name), name=name)
    keys = {True: ["x", "z", None], False: ["x", "z"]}
    with TestDriver(app, shards=3) as driver:
        driver.send("b", [{"rid": n, "k": key, "at": at(1)} for n, key in enumerate(["y", *keys[right_null]])])
        driver.send("a", [{"id": n, "k": key, "at": at(2)} for n, key in enumerate(["w", *keys[left_null]])])
        driver.end()
        rows = driver.rows("out")
        never = [column.name for column in joined.columns if not column.nullable]
        assert [row for row in rows if any(row[name] is None for name in never)] == []
        assert driver.rows("without") == [row for row in rows if row["k"] is None]
        assert driver.rows("with") == [row for row in rows if row["k"] is not None]
        alone = (how in ("left", "full")) * left_null + (how in ("right", "full")) * right_null
        assert len(driver.rows("without")) == alone
