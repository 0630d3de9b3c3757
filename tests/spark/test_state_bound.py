"""The state of a job on Spark, by its own books: an hour of event time over windows, sessions, groups and duplicates, then silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import headrace as hr

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COUNTED = {"records": "count(*)", "total": "sum(number)"}
MINUTES_PER_EPOCH = 4
# Four keys have a record each six seconds, and every five minutes there are four others.
PER_MINUTE = 4 * 10
# The most rows that each may have: those of the keys and windows that are not over, and of what came in one epoch.
MOST = {
    "records.window": 4 * 2 * (3 + MINUTES_PER_EPOCH),
    "records.window#2": 4 * 2,
    "records.group": 4 * 5,
    "records.dedup": PER_MINUTE * (6 + MINUTES_PER_EPOCH + 1),
    "records.previous": 4 * 6,
}


def declared(home: Path) -> hr.App:
    app = hr.App("bound", home=home)
    stream = app.stream("records", "key string, number int, at timestamp", key="key", time="at", watermark=hr.bounded("10 seconds"))
    app.view("minutes", stream.window(hr.tumbling("1 minute"), by="key").agg(**COUNTED).emit(until="2 minutes"))
    app.view("sessions", stream.window(hr.session("30 seconds"), by="key").agg(**COUNTED))
    app.view("groups", stream.group("key", ttl="6 minutes").agg(**COUNTED))
    app.sink(stream.dedup(["key", "number"], ttl="6 minutes"), hr.log("first"))
    app.sink(stream.with_previous("number", by="key", ttl="6 minutes"), hr.log("pairs"))
    return app


def minutes(first: int, count: int) -> pa.Table:
    moments = [NOON + timedelta(minutes=first, seconds=second) for second in range(0, 60 * count, 6)]
    rows = [(f"{(at - NOON) // timedelta(minutes=5)}-{key}", at) for at in moments for key in range(4)]
    numbers = range(first * PER_MINUTE, first * PER_MINUTE + len(rows))
    return pa.table({"key": [key for key, _ in rows], "number": pa.array(numbers, pa.int32()), "at": [at for _, at in rows]})


@pytest.mark.usefixtures("spark")
def test_state_stays_within_its_bound_for_an_hour_and_falls_back_when_keys_go_quiet(tmp_path: Path) -> None:
    app = declared(tmp_path)
    with app.log.producer() as producer:
        for first in range(0, 60, MINUTES_PER_EPOCH):
            producer.send_table("records", minutes(first, MINUTES_PER_EPOCH))
        # All that was before it is over: the watermark is hours further.
        producer.send_table("records", minutes(180, 1).slice(0, 1))
    report = app.run(until="caught-up", rows_per_epoch=MINUTES_PER_EPOCH * PER_MINUTE)
    sizes = sizes_of(app)
    assert set(sizes.get_column("step")) == set(MOST)
    assert sizes.get_column("epoch").n_unique() > 10, "an hour is more than a few epochs"
    for step, most in MOST.items():
        mine = sizes.filter(pl.col("step") == step)
        rows, stored = mine.get_column("state_rows"), mine.get_column("state_bytes")
        assert rows.max() <= most, step
        assert rows[-1] <= 1, step
        # Small runs are merged when they are many: until then they have some kilobytes each, however few rows are left.
        assert stored.max() <= 2**18, step
    assert {kept["step"]: kept["rows"] for kept in report.state} == dict(
        sizes.filter(pl.col("epoch") == pl.col("epoch").max()).select("step", "state_rows").rows()
    )
    assert app.log.read("first").num_rows == 60 * PER_MINUTE + 1


def sizes_of(app: hr.App) -> pl.DataFrame:
    """What each step kept at the end of each epoch, over all tasks."""
    books = pl.from_arrow(app.log.read("bound.accounting", columns=["epoch", "step", "state_rows", "state_bytes"]))
    assert isinstance(books, pl.DataFrame)
    kept = books.filter(pl.col("state_rows").is_not_null())
    return kept.group_by("epoch", "step").agg(pl.col("state_rows", "state_bytes").sum()).sort("epoch", "step")
