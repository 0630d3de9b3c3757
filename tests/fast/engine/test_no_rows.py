"""Steps behind one that lets nothing through: they are in the accounting, and cost nothing."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.engine.program import stateless_steps
from headrace.engine.program.computed_columns import computed
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at


def test_steps_without_records_are_counted_and_compute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Declaration("none")
    rows = app.stream("rows", "k string, n int, at timestamp", key="k", time="at", watermark=bounded("0s"))
    large = rows.where("n > 10").with_columns(m="n * 2").score(lambda table: table["m"], inputs="m")
    app.view("groups", large.group("k", ttl=None).agg(total="sum(score)"))
    app.sink(large.select("k", "score"), LogTopic("out"), name="out")
    asked = list[int]()

    def noted(frame: pl.DataFrame, *others: Any) -> Any:
        asked.append(frame.height)
        return computed(frame, *others)

    monkeypatch.setattr(stateless_steps, "computed", noted)
    with TestDriver(app) as driver:
        driver.send("rows", [{"k": "a", "n": 1, "at": at(0)}])
        assert asked == [1]
        counts = {row["step"]: (row["in"], row["out"], row["filtered"]) for row in driver.accounting()}
        assert (counts.pop("rows"), counts.pop("rows.where")) == ((1, 1, 0), (1, 0, 1))
        assert len(counts) == 5
        assert set(counts.values()) == {(0, 0, 0)}
        driver.send("rows", [{"k": "a", "n": 11, "at": at(1)}])
        assert driver.rows("groups") == [{"k": "a", "total": 22.0}]
        assert driver.rows("out") == [{"k": "a", "score": 22.0}]
