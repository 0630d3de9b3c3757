"""`headrace accounting --state` of every kind of join: what each side keeps, in rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.cli import commands
from headrace.core.settings import Settings
from tests.support.joining import LEFT, RIGHT
from tests.support.streams import at


def names(keys: pa.Table) -> list[dict[str, str]]:
    return [{"k": key, "name": key.upper()} for key in keys["k"].to_pylist() if key != "z"]


def declared(home: Path) -> hr.App:
    app = hr.App("joins", settings=Settings(home=home, master="local[2]"))
    timed: dict[str, Any] = {"key": "k", "time": "at", "watermark": hr.bounded("10s", idle="1 day")}
    left, right = app.stream("a", LEFT, **timed), app.stream("b", RIGHT, **timed)
    near: dict[str, Any] = {"on": "k", "within": ("0s", "30s")}
    latest = right.to_table("k")
    app.sink(left.join_within(right, **near), hr.log("inner"))
    app.sink(left.join_within(right, **near, how="full"), hr.log("full"))
    app.sink(left.join(latest.as_of("at", history="20s"), on="k"), hr.log("versions"))
    app.sink(left.join(latest, on="k", how="left"), hr.log("current"))
    app.view("tables", left.to_table("id").join(right.to_table("rid"), on="k", how="full", ttl=None))
    app.sink(left.lookup(names, on="k", returns="name string", cache="1 hour"), hr.log("named"))
    return app


@pytest.mark.usefixtures("spark")
def test_the_state_of_each_join_is_the_rows_that_its_sides_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = declared(tmp_path)
    with app.log.producer(linger=None) as producer:
        for number, (key, second) in enumerate([("x", 10), ("x", 70), ("y", 95), ("z", 100)]):
            producer.send("a", {"id": number, "k": key, "at": at(second)})
        for number, (key, second) in enumerate([("x", 10), ("x", 65), ("y", 80), ("y", 92), ("x", 100)]):
            producer.send("b", {"rid": number, "k": key, "at": at(second)})
    app.run(until="caught-up")
    capsys.readouterr()
    assert commands.execute(["accounting", "joins", "--state", "--home", str(tmp_path)]) == 0
    kept = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    # The watermark is at 90 s.
    assert {row["step"]: row["rows"] for row in kept} == {
        "a.join": 3 + 2,  # left from 60 s on; right from 90 s on
        "a.join#2": 3 + 4,  # both sides from 60 s on
        "a.join#3": 2 + 4,  # records that wait; versions from 70 s on, and the one before of x
        "a.join#4": 2,  # a copy of the table
        "a.table": 4,
        "b.table": 2,
        "b.table#2": 5,
        "a.table.join": 4 + 5,  # the rows of both tables
        "a.lookup": 3,  # an answer for each key, also where there is no row
        "tables.exchange": 0,
    }
    assert all(row["bytes"] > 0 for row in kept if row["rows"])
