"""The app of the soak, the records it is fed with, and what its sinks must hold in the end."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import headrace as hr

TOPIC, SCHEMA = "clicks", "id bigint, user string, amount bigint, note string, at timestamp"
USERS, BATCH = 200, 20
STEP, GAP, TTL = timedelta(seconds=1), timedelta(seconds=5), "5 minutes"
# One record in this many is sent twice.
_TWICE = 10
_CHUNK = 500_000


def app_of(home: Path, tables: Path, dsn: str) -> hr.App:
    """A dedup with a ttl, a window, sessions and a top, to a view, Parquet files, a Delta table and PostgreSQL."""
    app = hr.App("soak", home=home)
    clicks = app.stream(TOPIC, schema=SCHEMA, key="user", time="at", watermark=hr.bounded("2 seconds", idle="1 minute"), partitions=2)
    fresh = clicks.dedup("id", ttl=TTL)
    per_user = fresh.window(hr.tumbling("1 minute"), by="user").agg(n="count(*)", total="sum(amount)")
    visits = fresh.window(hr.session(GAP), by="user").agg(n="count(*)")
    app.view("best", per_user.top(10, by="total", per="window"))
    app.sink(visits, hr.parquet(tables / "visits", roll="10 seconds"))
    app.sink(per_user, hr.delta(tables / "per_user", roll="10 seconds"), name="lake")
    app.sink(per_user, hr.postgres("per_user", dsn=dsn), name="rows")
    return app


def grow(log: hr.Log, size: int, at: datetime) -> int:
    """Grow the topic by this many bytes; gives the number of records, which are duplicates of one but the first."""
    note, count = "x" * 900, 0
    chunk = pa.table({
        "id": pa.array(np.full(_CHUNK // 10, -1)), "user": ["nobody"] * (_CHUNK // 10), "amount": pa.array(np.ones(_CHUNK // 10, np.int64)),
        "note": [note] * (_CHUNK // 10), "at": pa.array([at] * (_CHUNK // 10), pa.timestamp("us", "UTC")),
    })  # fmt: skip
    with log.producer(acks="1") as producer:
        while size > 0:
            producer.send_table(TOPIC, chunk)
            size -= chunk.nbytes
            count += chunk.num_rows
    return count


class Feed(threading.Thread):
    """Sends a few records of the next second of event time, again and again."""

    def __init__(self, log: hr.Log, begin: datetime, pause: float) -> None:
        super().__init__(daemon=True)
        self._log, self._moment, self._pause = log, begin, pause
        self._random = np.random.default_rng(17)
        self._enough = threading.Event()
        self.sent: list[pl.DataFrame] = []

    def run(self) -> None:
        with self._log.producer(acks="1") as producer:
            while not self._enough.wait(self._pause):
                frame = self._batch()
                producer.send_table(TOPIC, frame.to_arrow())
                self.sent.append(frame)

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def _batch(self) -> pl.DataFrame:
        first, self._moment = BATCH * len(self.sent), self._moment + STEP
        numbers = np.arange(first, first + BATCH)
        numbers[::_TWICE] = numbers[1::_TWICE]
        # By its number a record has its user and its amount, so that one that is sent twice is the same.
        spread = (numbers * 2_654_435_761) % (1 << 32)
        return pl.DataFrame({
            "id": numbers, "user": [f"user {number}" for number in spread % USERS], "amount": spread % 100,
            "note": ["click"] * BATCH, "at": pl.Series([self._moment] * BATCH, dtype=pl.Datetime("us", "UTC")),
        })  # fmt: skip


def expected(sent: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The windows and the sessions of all that was sent."""
    fresh = sent.unique("id", keep="first")
    windows = fresh.group_by("user", pl.col("at").dt.truncate("1m").alias("window_start")).agg(
        n=pl.len().cast(pl.Int64), total=pl.sum("amount")
    )
    ordered = fresh.sort("user", "at")
    begins = (pl.col("at").diff().over("user") >= GAP).fill_null(True)
    sessions = ordered.with_columns(begins.cum_sum().over("user").alias("number")).group_by("user", "number").agg(n=pl.len().cast(pl.Int64))
    return windows.sort("user", "window_start"), sessions.sort("user", "number").select("user", "n").sort("user", "n")


def held(tables: Path, connection: Any) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What PostgreSQL, the Delta table and the Parquet files hold."""
    from deltalake import DeltaTable

    columns = ["user", "window_start", "n", "total"]
    found = connection.execute('SELECT "user", window_start, n, total FROM per_user').fetchall()
    rows = pl.DataFrame(
        found, schema={"user": pl.String, "window_start": pl.Datetime("us", "UTC"), "n": pl.Int64, "total": pl.Int64}, orient="row"
    )
    lake = pl.DataFrame(DeltaTable(tables / "per_user").to_pyarrow_table()).select(columns)
    visits = pl.concat([pl.read_parquet(file) for file in sorted((tables / "visits").glob("*.parquet"))])
    return rows.sort("user", "window_start"), lake.sort("user", "window_start"), visits.select("user", "n").sort("user", "n")


def beginning(epochs: int) -> datetime:
    """So early that no record is ahead of the clock."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(days=2) - 4 * epochs * STEP
