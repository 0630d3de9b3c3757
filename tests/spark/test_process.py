"""Functions of the user's own travel to the tasks of a job, with state and timers that outlive a run."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headrace as hr
from headrace.core.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.usefixtures("spark")
def test_state_and_timers_go_on_in_the_next_run_and_a_function_over_frames_that_raises_says_where(tmp_path: Path) -> None:
    limit = 3

    def on_event(event: Any, state: Any, timers: Any) -> Any:
        if event.value < 0:
            raise ValueError("less than nothing")
        state.count = (state.count or 0) + 1
        timers.after("1 minute")

    def on_timer(timer: Any, state: Any) -> Any:
        if state.count >= limit:
            yield {"key": timer.key.key, "count": state.count, "at": timer.at}
        state.clear()

    def counted(events: pl.DataFrame, states: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        if events.filter(pl.col("value") > 9).height:
            raise ValueError("more than nine")
        sums = events.group_by("key").agg(pl.len().cast(pl.Int32).alias("more"), pl.col("_time").max())
        after = states.join(sums, on="key", how="left", nulls_equal=True).with_columns(pl.sum_horizontal("count", "more").alias("count"))
        return after.filter(pl.col("_time").is_not_null()).select("key", "count", "_time"), after.select("key", "count")

    app = hr.App("process", settings=Settings(home=tmp_path, master="local[2]"))
    records = app.stream("records", "key string, value int, at timestamp", key="key", time="at", watermark=hr.bounded("1s"))
    busy = records.process(
        on_event, by="key", state="count int", returns="key string, count int, at timestamp", on_timer=on_timer, ttl="1 hour"
    )
    app.view("busy", busy, key=["key", "at"])
    totals = records.process(counted, by="key", state="count int", returns="key string, count int", ttl="1 hour", vectorized=True)
    app.view("totals", totals, key=["key", "count"])

    def send(*seconds: int, value: int = 1) -> None:
        with app.log.producer() as producer:
            for second in seconds:
                for key in ("a", "b"):
                    producer.send("records", {"key": key, "value": value, "at": NOON + timedelta(seconds=second)})

    send(0, 20)
    send(30, value=-1)
    app.run(until="caught-up")
    send(40, 200)
    report = app.run(until="caught-up")
    assert app.read("busy").to_pylist() == [{"key": key, "count": 3, "at": NOON + timedelta(seconds=100)} for key in ("a", "b")]
    assert {(row["key"], row["count"]) for row in app.read("totals").to_pylist()} >= {("a", 4), ("b", 4)}
    letters = app.log.read("records.dead").to_pylist()
    assert [letter["reason"].split(" (")[0] for letter in letters] == ["ValueError: less than nothing"] * 2
    (counts,) = [row for row in report.accounting if row["step"] == "records.process"]
    assert (counts["in"], counts["out"], counts["dead_letter"]) == (10, 8, 2)
    send(201, 300, value=10)
    with pytest.raises(hr.JobError, match=r"'records.process#2' cannot continue: ValueError: more than nine \(test_process.py:\d+\)"):
        app.run(until="caught-up")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("behind", ["process", "cast(conv(hex(process), 16, 10) as int)"], ids=["nothing", "Spark"])
def test_a_key_stays_with_the_process_that_has_its_state_in_memory(tmp_path: Path, behind: str) -> None:
    def who(event: Any, _state: Any) -> Any:
        yield {"key": event.key, "process": os.getpid()}

    app = hr.App("staying", settings=Settings(home=tmp_path, master="local[2]", quick_rows=0))
    records = app.stream("records", "key int, at timestamp", key="key", time="at", watermark=hr.bounded("1s"))
    seen = records.process(who, by="key", state="nothing int", returns="key int, process int", ttl="1 hour")
    # What Spark evaluates of a task's rows has processes at work at the same time.
    app.view("who", seen.select("key", f"{behind} as process"), key=["key", "process"])
    with app.log.producer() as producer:
        for second in range(8):
            for key in range(16):
                producer.send("records", {"key": key, "at": NOON + timedelta(seconds=second)})
            producer.flush()
    report = app.run(until="caught-up", rows_per_epoch=16)
    assert report.epoch >= 6
    pairs = {(row["key"], row["process"]) for row in app.read("who").to_pylist()}
    assert len(pairs) == 16
    assert len({process for _, process in pairs}) == 2
