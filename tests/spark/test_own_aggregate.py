"""An aggregate of the user's own travels to the tasks of a job, wherever its class was written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import headrace as hr
from headrace.core.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.usefixtures("spark")
def test_a_job_computes_an_aggregate_whose_class_is_known_to_the_driver_alone(tmp_path: Path) -> None:
    class RootMeanSquare(hr.Aggregate):
        state: ClassVar = {"squares": "double", "count": "bigint"}
        returns = "double"
        additive = True

        def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
            return {"squares": (values[0] * values[0]).sum(), "count": values[0].count()}

        def finish(self, state: Any) -> pl.Expr:
            return (state["squares"] / state["count"]).sqrt()

    app = hr.App("own", settings=Settings(home=tmp_path, master="local[2]"))
    app.aggregate("rms", RootMeanSquare())
    readings = app.stream(
        "readings", "sensor string, volts double, at timestamp", key="sensor", time="at", watermark=hr.bounded("1 minute")
    )
    hopping = readings.window(hr.hopping("2 minutes", every="1 minute"), by="sensor")
    app.view("loud", hopping.agg(rms="rms(volts)", nearly="approx_count_distinct(volts)", path="collect_list(volts)"))
    with app.log.producer() as producer:
        for second, volts in [(0, 3.0), (70, 4.0), (30, 4.0), (65, 3.0)]:
            producer.send("readings", {"sensor": "a", "volts": volts, "at": NOON + timedelta(seconds=second)})
    app.run(until="end")
    found = {row["window_start"]: (row["rms"], row["nearly"], row["path"]) for row in app.read("loud").to_pylist()}
    half = 12.5**0.5
    assert found == {
        NOON - timedelta(minutes=1): (half, 2, [3.0, 4.0]),
        NOON: (half, 2, [3.0, 4.0, 3.0, 4.0]),
        NOON + timedelta(minutes=1): (half, 2, [3.0, 4.0]),
    }
