"""Sketches keep to their stated error, whatever the batches, and to the same hashes forever."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from headrace.operators.aggregates.functions.hashing import hashes
from tests.support.aggregating import aggregated
from tests.support.examples import INNER_LOOP, seeds

START = datetime(2026, 1, 1, tzinfo=UTC)


def frame(**columns: Any) -> pl.DataFrame:
    made = pl.DataFrame({"k": "x"} | columns)
    absent = {"i": pl.Int32, "l": pl.Int64, "f": pl.Float32, "d": pl.Float64, "s": pl.String, "b": pl.Boolean, "a": pl.Date}
    given = [pl.lit(START).cast(pl.Datetime("us", "UTC")).alias("at"), pl.lit(None, pl.Decimal(10, 2)).alias("m")]
    nulls = [pl.lit(None, kind).alias(name) for name, kind in absent.items() if name not in columns]
    return made.with_columns(*given, *nulls)


def skewed(count: int, seed: int) -> np.ndarray:
    return np.minimum(np.random.default_rng(seed).zipf(1.3, count), 2**40)


@pytest.mark.parametrize(("text", "error"), [("approx_count_distinct(l)", 0.05), ("approx_count_distinct(l, 0.01)", 0.01)])
def test_distinct_values_are_counted_within_the_error_and_the_same_in_every_order(text: str, error: float) -> None:
    misses = []
    for size in (1, 10, 100, 1_000, 20_000, 100_000):
        values = np.random.default_rng(size).integers(-(2**60), 2**60, size)
        made = frame(l=np.concatenate([values, values[: size // 2]]))
        found = {aggregated([text], made, seed=seed)["x"][text] for seed in range(2 if INNER_LOOP else 3)}
        assert len(found) == 1, "the union of registers depends on nothing but the values"
        misses.append(abs(found.pop() / size - 1))
    assert max(misses) < 3 * error
    assert sum(misses) / len(misses) < error


def test_distinct_texts_are_counted_within_the_error() -> None:
    text = "approx_count_distinct(s)"
    for size in (10, 5_000, 50_000):
        made = frame(s=[f"https://example.com/{number}" for number in range(size)])
        assert abs(aggregated([text], made, seed=1)["x"][text] / size - 1) < 3 * 0.05


@pytest.mark.parametrize("accuracy", [10, 100, 1_000])
def test_a_percentile_is_within_its_share_of_the_ranks(accuracy: int) -> None:
    shares = (0.01, 0.25, 0.5, 0.9, 0.999)
    text = f"approx_percentile(d, array({', '.join(map(str, shares))}), {accuracy})"
    for seed in seeds(4):
        values = np.sort(np.random.default_rng(seed).lognormal(size=60_000))
        found = aggregated([text], frame(d=np.random.default_rng(seed).permutation(values)), seed=seed)["x"][text]
        ranks = np.searchsorted(values, found) / len(values)
        assert np.abs(ranks - shares).max() <= 1 / accuracy


def test_a_percentile_of_few_values_is_exact() -> None:
    values = list(range(2_999))
    text = "approx_percentile(l, 0.5, 1000)"
    assert {aggregated([text], frame(l=values[::-1]), seed=seed)["x"][text] for seed in range(4)} == {1_499}


def test_the_most_frequent_values_are_counted_exactly_while_there_are_counters_for_all() -> None:
    values = skewed(20_000, seed=2) % 5_000
    counts = sorted(Counter(values.tolist()).items(), key=lambda pair: (-pair[1], pair[0]))
    text = "approx_top_k(l, 20, 5000)"
    for seed in range(3):
        assert aggregated([text], frame(l=values), seed=seed)["x"][text] == [{"item": item, "count": n} for item, n in counts[:20]]


def test_the_most_frequent_values_of_many_are_never_counted_too_low_and_too_high_by_their_share_at_most() -> None:
    values = skewed(50_000, seed=3)
    truth = Counter(values.tolist())
    text = "approx_top_k(l, 10, 200)"
    for seed in seeds(4):
        found = aggregated([text], frame(l=values), seed=seed)["x"][text]
        assert {pair["item"] for pair in found[:5]} == {item for item, _ in truth.most_common(5)}
        assert all(0 <= pair["count"] - truth[pair["item"]] <= len(values) / 200 for pair in found)


@pytest.mark.parametrize("share", [0.3, 0.05, 0.005])
def test_no_heavy_hitter_is_missed_and_counts_are_too_large_by_a_tenth_of_the_share_at_most(share: float) -> None:
    values = skewed(50_000, seed=4)
    truth = Counter(values.tolist())
    text = f"heavy_hitters(l, {share})"
    for seed in seeds(3):
        found = {pair["item"]: pair["count"] for pair in aggregated([text], frame(l=values), seed=seed)["x"][text]}
        assert {item for item, count in truth.items() if count >= share * len(values)} <= found.keys()
        assert all(0 <= count - truth[item] <= share / 10 * len(values) for item, count in found.items())


HASHES = [
    (pl.Series([0, 1, -1]), [16294208416658607535, 10451216379200822465, 16490336266968443936]),
    (pl.Series(["", "a", "a longer text"]), [16294208416658607535, 6774081908283191102, 17757610056715003279]),
    (pl.Series([b"\x00", b"\x00\x00"]), [6791897765849424158, 7235116703822611636]),
    (pl.Series([Decimal("1.10"), Decimal("-1.10")]), [17602517155370204362, 12334139710465750225]),
    (pl.Series([0.5, float("inf")]), [17606427253252083309, 2638638862653029785]),
    (pl.Series([date(2026, 1, 1)]), [9933626954879999824]),
    (pl.Series([{"a": 1}, {"a": 2}]), [3676196079908875085, 5846688351391836169]),
    (pl.Series([[1], [1, 2]]), [6089610651650739883, 17932342847451748610]),
    (pl.Series([True, False]), [10451216379200822465, 16294208416658607535]),
]


@pytest.mark.parametrize(("values", "known"), HASHES, ids=[str(values.dtype) for values, _ in HASHES])
def test_the_hash_of_a_value_is_the_same_for_ever(values: pl.Series, known: list[int]) -> None:
    """Sketches in the state of a job are made of these: another hash would spoil them."""
    assert hashes(values).tolist() == known


def test_the_two_zeros_have_one_hash_and_so_has_every_nan() -> None:
    zero, minus, nan, other = hashes(pl.Series([0.0, -0.0, float("nan"), -float("nan")])).tolist()
    assert (zero == minus, nan == other, zero == nan) == (True, True, False)
