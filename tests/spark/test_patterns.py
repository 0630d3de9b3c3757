"""Patterns and scores in a job: searches go on in the next run, and a match has the places of its events in the log."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headrace as hr
from headrace.core.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = "card string, amount double, country string, at timestamp"


def declare(app: hr.App) -> None:
    def risk(table: pa.Table) -> Any:
        return pc.divide(table.column("amount"), 1000)

    payments = app.stream("payments", SCHEMA, key="card", time="at", watermark=hr.bounded("20 seconds"))
    scored = payments.score(risk, inputs="amount", output="risk")
    sprees = scored.match(
        by="card", pattern="A{3,}", define={"A": "amount > 500"}, where="count(distinct A.country) >= 2", within="5 minutes",
        measures={"n": "count(A.*)", "total": "sum(A.amount)", "risk": "max(A.risk)", "number": "match_number()"},
    )  # fmt: skip
    rising = payments.match(
        by="card", pattern="S UP{2,}?", define={"UP": "amount > last(S.amount) and amount > prev(amount)"}, within="10 minutes",
        after="next row", rows="all", measures={"is": "classifier()"},
    )  # fmt: skip
    app.sink(sprees, hr.log("sprees"), name="sprees")
    app.sink(rising, hr.log("rising"), name="rising")


def sent(chance: random.Random) -> list[dict[str, Any]]:
    rows = [
        {"card": f"c{chance.randrange(6)}", "amount": float(chance.randrange(300, 900)), "country": chance.choice("abc"), "at": second}
        for second in range(0, 3600, 9)
    ]
    rows.sort(key=lambda row: row["at"] + chance.uniform(0, 20))
    return [{**row, "at": NOON + timedelta(seconds=row["at"])} for row in rows]


@pytest.mark.usefixtures("spark")
def test_a_job_that_is_stopped_and_goes_on_finds_the_matches_that_one_run_finds(tmp_path: Path) -> None:
    rows = sent(random.Random(4))
    whole = hr.App("whole", settings=Settings(home=tmp_path / "whole", master="local[2]"))
    declare(whole)
    with hr.TestDriver(whole) as driver:
        driver.send("payments", rows)
        driver.end()
        wanted = {name: driver.rows(name) for name in ("sprees", "rising")}
    app = hr.App("patterns", settings=Settings(home=tmp_path / "job", master="local[2]"))
    declare(app)
    for part in (rows[:130], rows[130:260], rows[260:]):
        with app.log.producer(linger=None) as producer:
            for row in part:
                producer.send("payments", row)
        app.run(until="caught-up")
    report = app.run(until="end")
    for name, expected in wanted.items():
        found = app.log.read(name, columns=app.log.topic(name).columns.names).to_pylist()
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert found
    counts = {row["step"]: row for row in report.accounting}
    assert all(row["late"] == row["dead_letter"] == 0 for row in counts.values())
    (model,) = report.models
    assert (model["step"], model["model"]) == ("payments.score", "risk")
    assert model["scorings"] >= 3
    assert "payments.score: scored by risk" in str(report)
