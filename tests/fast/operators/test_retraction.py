"""Aggregates over a changelog: what was taken back leaves nothing behind, whatever came first."""

from __future__ import annotations

import math
import random
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fast.operators.test_aggregates import Geometric, frame, rows
from tests.support.aggregating import aggregated
from tests.support.examples import examples

OWN = {"geometric": Geometric()}
TEXTS = [
    "count(*)", "count(s)", "count(*) filter (where b)", "sum(i)", "sum(d)", "avg(d)", "sum(m) filter (where b)", "avg(m)",
    "count(distinct s)", "count(distinct d)", "count(distinct s, i)", "bool_and(b)", "bool_or(b) filter (where i > 0)",
    "collect_list(s)", "collect_list(m) filter (where b)", "collect_set(d)", "collect_set(a)",
    "min(i)", "max(d)", "min(d)", "max(s) filter (where b)", "min(a)", "first(s)", "last(i) filter (where b)", "first(s, true)",
    "min_by(s, i)", "max_by(m, d) filter (where b)", "max_by(s, i, 3)", "min_by(i, d, 2)", "round(stddev(i), 1)", "round(stddev_pop(m), 1)",
    "round(geometric(abs(cast(i as double)) + 1), 3)",
]  # fmt: skip


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_what_was_taken_back_leaves_nothing_behind(seed: int, count: int) -> None:
    chance = random.Random(seed)
    made = rows(seed, count)
    for row in made:
        row["d"] = chance.choice([row["d"], float("nan"), float("inf"), float("-inf"), 1e300])
    kept = [row for row in made if chance.random() < 0.6]
    gone = [row for row in made if row not in kept]
    # Every retraction has its addition; of two that are equal, one may stay.
    changes = pl.concat([signed([*kept, *gone], 1), signed(gone, -1)])
    found = aggregated(TEXTS, changes, seed=seed, own=OWN)
    wanted = aggregated(TEXTS, frame(kept), own=OWN) if kept else {}
    for key, values in found.items():
        expected = wanted.get(key) or aggregated(TEXTS, frame([{"k": key, "at": made[0]["at"]}]), own=OWN)[key] | {"count(*)": 0}
        assert [text for text in TEXTS if not same(values[text], expected[text])] == []


def signed(made: list[dict[str, Any]], operation: int) -> pl.DataFrame:
    return frame(made).with_columns(pl.lit(operation, pl.Int8).alias("_op"))


def same(one: Any, two: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two or (isinstance(one, float) and isinstance(two, float) and math.isnan(one) and math.isnan(two))
