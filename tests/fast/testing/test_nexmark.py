"""The queries of Nexmark in virtual time: each gives the answer of DuckDB over the same events, however they came."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from bench._nexmark.answers import SQL, Answers, difference
from bench._nexmark.driven import driven
from bench._nexmark.events import Events, Tables
from bench._nexmark.queries import OUT, QUERIES
from bench._nexmark.site import Site
from headrace.api.declaration import Declaration
from headrace.core.remarks import PlanWarning
from headrace.testing.driver import TestDriver

# Of more than ten seconds of event time, so that windows close and sessions end.
STATELESS = {"q0", "q1", "q2", "q10", "q14", "q21", "q22"}
EVENTS = Events(6_000, rate=200, disorder=300, seed=7)


@cache
def batches() -> Sequence[Tables]:
    return list(EVENTS.batches(1_000))


@cache
def answers() -> Answers:
    return Answers(batches())


@pytest.mark.parametrize("name", [name for name in SQL if name != "q12"])
def test_a_query_gives_the_answer_of_duckdb(name: str) -> None:
    assert difference(driven(name, EVENTS, batches(), partitions=1), answers().of(name)) == ""


@pytest.mark.parametrize("name", [name for name in SQL if name not in STATELESS and name != "q12"])
def test_partitions_shards_and_restarts_change_no_answer(name: str) -> None:
    assert difference(driven(name, EVENTS, batches(), partitions=3, restarts=True), answers().of(name)) == ""


def test_q12_counts_bids_in_the_ten_seconds_of_the_wall_clock_in_which_they_are_read() -> None:
    expected, now = Counter[tuple[int, datetime]](), EVENTS.begin
    app = Declaration("q12")
    QUERIES["q12"].output(app, Site(app, longest_auction=EVENTS.longest_auction))
    with pytest.warns(PlanWarning, match="wall clock"):
        driver = TestDriver(app, starts_at=now)
    with driver:
        for batch in batches():
            driver.send("bid", batch["bid"])
            window = now - timedelta(seconds=now.second % 10)
            expected.update((bidder, window) for bidder in batch["bid"]["bidder"].to_pylist())
            driver.wait("4 seconds")
            now += timedelta(seconds=4)
        driver.end()
        rows = driver.rows(OUT)
    assert {(row["bidder"], row["starttime"]): row["bid_count"] for row in rows} == expected
    assert {row["endtime"] - row["starttime"] for row in rows} == {timedelta(seconds=10)}
    assert len({row["starttime"] for row in rows}) == 3


def test_all_23_queries_are_there() -> None:
    assert list(QUERIES) == list(SQL) == [f"q{number}" for number in range(23)]


def test_events_have_the_published_ratios_and_depend_on_the_seed_alone() -> None:
    whole = Events(6_000, rate=200, disorder=300, seed=7).tables()
    assert all(table.equals(pa.concat_tables(batch[name] for batch in batches())) for name, table in whole.items())
    assert {name: table.num_rows for name, table in whole.items()} == {"person": 120, "auction": 360, "bid": 5_520}
    other = Events(6_000, rate=200, disorder=300, seed=8).tables()["bid"]
    assert not other.slice(0, 100).equals(whole["bid"].slice(0, 100))


def test_disorder_is_bounded_and_changes_only_the_order() -> None:
    ordered, mixed = (Events(3_000, rate=1_000, disorder=disorder, seed=1).tables()["bid"] for disorder in (0, 200))
    assert not mixed.equals(ordered)
    everything = [(name, "ascending") for name in mixed.column_names]
    assert mixed.sort_by(everything).equals(ordered.sort_by(everything))
    latest = EVENTS.begin
    for at in mixed["dateTime"].to_pylist():
        latest = max(latest, at)
        assert latest - at <= timedelta(milliseconds=201)


def test_an_answer_that_differs_in_one_value_or_row_is_told() -> None:
    right = answers().of("q17")
    first = pl.int_range(pl.len()) == 0
    assert difference(right.reverse(), right) == ""
    for name in ("avg_price", "total_bids", "day"):
        other = pl.lit("never") if name == "day" else pl.col(name) + 1
        assert name in difference(right.with_columns(pl.when(first).then(other).otherwise(name).alias(name)), right)
    assert "rows" in difference(right.head(-1), right)


def test_the_benchmark_says_how_it_is_used() -> None:
    """Which it can only do if all that it measures with is there."""
    command = [sys.executable, "bench/nexmark.py", "--help"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--queries" in done.stdout
