"""Windows by a function of the user's, which travels to the tasks of a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import headrace as hr

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.usefixtures("spark")
def test_a_function_of_ones_own_bounds_the_windows_of_a_job(tmp_path: Path) -> None:
    minutes = 15

    def quarters(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start = times.astype("datetime64[m]").astype("int64") // minutes * minutes
        # There is no window in the last quarter of an hour.
        holds = start % 60 < 45
        return np.where(holds, start, -1).astype("datetime64[m]"), np.where(holds, start + minutes, -1).astype("datetime64[m]")

    app = hr.App("quarters", home=tmp_path)
    clicks = app.stream("clicks", schema="page string, at timestamp", key="page", time="at", watermark=hr.bounded("0s"))
    app.view("per_quarter", clicks.window(hr.custom(quarters), by="page").agg(clicks="count(*)").emit(early="5 minutes", until="1 hour"))
    with app.log.producer() as producer:
        for minute in range(50):
            producer.send("clicks", {"page": "/", "at": NOON + timedelta(minutes=minute)})
    report = app.run(until="end")
    found = sorted((row["window_start"], row["clicks"], row["pane"]) for row in app.read("per_quarter").to_pylist())
    assert found == [(NOON + timedelta(minutes=minutes * number), 15, "on-time") for number in range(3)]
    assert [row["reason"] for row in app.log.read("clicks.dead").to_pylist()] == ["no window contains its time"] * 5
    (counted,) = [row for row in report.accounting if row["step"] == "clicks.window"]
    assert (counted["in"], counted["out"], counted["dead_letter"]) == (50, 45, 5)
