"""Aggregates against plain Python: whatever the order and the batches, with nulls, NaN, filters and decimals."""

from __future__ import annotations

import math
import random
import statistics
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.columns.schema import schema
from headrace.operators.aggregates.partials import FAULT
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.aggregates.user_aggregate import Aggregate
from tests.support.aggregating import SCHEMA, aggregated
from tests.support.examples import examples, seeds
from tests.support.near import near

START = datetime(2026, 1, 1, tzinfo=UTC)
NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "k": ["x", "y", None],
    "i": [None, 0, 1, -1, 7, 7, 7, 2**31 - 1],
    "l": [None, 2**60, -(2**60), 3, 3],
    "f": [None, 0.5, -0.25],
    "d": [None, 0.1, 0.2, 1e-3, 1e15, -1e15, 3.3, -0.0, 0.0],
    "m": [None, Decimal("0.10"), Decimal("-2.50"), Decimal("99999999.99")],
    "s": [None, "", "a", "b", "ß", "a much longer text"],
    "b": [None, True, False],
    "a": [None, date(2024, 2, 29), date(1969, 12, 31)],
}
Rows = list[dict[str, Any]]


def rows(seed: int, count: int) -> Rows:
    chance = random.Random(seed)
    return [
        {name: chance.choice(values) for name, values in VALUES.items()} | {"at": START + timedelta(seconds=chance.randrange(50))}
        for _ in range(count)
    ]


def frame(made: Rows) -> pl.DataFrame:
    return pl.DataFrame(made, schema={field.name: dtype(field.type) for field in schema(SCHEMA)}, orient="row")


def known(made: Rows, column: str) -> list[Any]:
    return [row[column] for row in made if row[column] is not None]


def deviation(values: list[float], sample: bool) -> float | None:
    if len(values) <= sample:
        return None
    return statistics.stdev(values) if sample else statistics.pstdev(values)


def listed(made: Rows, column: str) -> list[Any]:
    return [row[column] for row in sorted((row for row in made if row[column] is not None), key=lambda row: (row["at"], row[column]))]


def top(made: Rows, value: str, by: str, count: int) -> list[Any] | None:
    chosen = [row for row in made if row[by] is not None]
    chosen.sort(key=lambda row: (-row[by], row[value] is None, row[value] if row[value] is not None else ""))
    return [row[value] for row in chosen[:count]] or None


def quantile(values: list[Any], share: float) -> Any:
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1] if values else None


def tails(made: Rows) -> list[Decimal] | None:
    return [quantile(known(made, "m"), share) for share in (0.1, 0.9)] if known(made, "m") else None


def every(made: Rows) -> bool | None:
    return all(known(made, "b")) if known(made, "b") else None


def frequent(values: list[Any], count: int) -> list[dict[str, Any]]:
    pairs = sorted({value: values.count(value) for value in values}.items(), key=lambda pair: (-pair[1], pair[0] is not None, pair[0]))
    return [{"item": item, "count": times} for item, times in pairs[:count]]


WANTED: dict[str, Any] = {
    "sum(d)": lambda made: math.fsum(known(made, "d")) if known(made, "d") else None,
    "avg(d)": lambda made: math.fsum(known(made, "d")) / len(known(made, "d")) if known(made, "d") else None,
    "sum(f)": lambda made: sum(known(made, "f")) if known(made, "f") else None,
    "collect_list(s)": lambda made: listed(made, "s"),
    "collect_list(i) filter (where b)": lambda made: listed([row for row in made if row["b"]], "i"),
    "array_agg(m)": lambda made: listed(made, "m"),
    "collect_set(s)": lambda made: sorted(set(known(made, "s"))),
    "collect_set(d)": lambda made: sorted(set(known(made, "d"))),
    "collect_list(distinct a)": lambda made: sorted(set(known(made, "a"))),
    "count(distinct d)": lambda made: len(set(known(made, "d"))),
    "count(distinct s, i)": lambda made: len({(row["s"], row["i"]) for row in made if row["s"] is not None and row["i"] is not None}),
    "bool_and(b)": every,
    "every(b) filter (where i > 0)": lambda made: every([row for row in made if (row["i"] or 0) > 0]),
    "some(b)": lambda made: any(known(made, "b")) if known(made, "b") else None,
    "max_by(s, i, 3)": lambda made: top(made, "s", "i", 3),
    "max_by(i, m, 100)": lambda made: top(made, "i", "m", 100),
    "approx_percentile(i, 0.5)": lambda made: quantile(known(made, "i"), 0.5),
    "percentile_approx(m, array(0.1, 0.9))": tails,
    "approx_percentile(a, 1)": lambda made: quantile(known(made, "a"), 1.0),
    "approx_top_k(s, 2)": lambda made: frequent([row["s"] for row in made], 2),
    "heavy_hitters(s, 0.3)": lambda made: [pair for pair in frequent(known(made, "s"), 9) if pair["count"] >= 0.3 * len(known(made, "s"))],
    "approx_count_distinct(s)": lambda made: len(set(known(made, "s"))),
    "approx_count_distinct(m, 0.01)": lambda made: len(set(known(made, "m"))),
}  # fmt: skip
NEARLY = {
    "stddev(d)": lambda made: deviation(known(made, "d"), sample=True),
    "stddev_pop(i)": lambda made: deviation(known(made, "i"), sample=False),
    "stddev_samp(m)": lambda made: deviation([float(value) for value in known(made, "m")], sample=True),
}


def grouped(made: Rows) -> dict[Any, Rows]:
    return {key: [row for row in made if row["k"] == key] for key in {row["k"] for row in made}}


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_aggregates_equal_plain_python_whatever_the_order_and_the_batches(seed: int, count: int) -> None:
    made = rows(seed, count)
    found = aggregated([*WANTED, *NEARLY], frame(made), seed=seed)
    for key, group in grouped(made).items():
        assert {text: found[key][text] for text in WANTED} == {text: wanted(group) for text, wanted in WANTED.items()}
        for text, wanted in NEARLY.items():
            assert near(found[key][text], wanted(group)), text


def test_a_sum_of_floats_is_the_same_in_every_order_and_rounded_once() -> None:
    chance = random.Random(4)
    for most in (-8, 2, 12, 26):
        values = [chance.choice([1, -1]) * chance.uniform(1, 10) * 10.0 ** chance.randrange(-10, most) for _ in range(500)]
        made = frame([{"k": "x", "at": START, "d": value} for value in values])
        sums = {aggregated(["sum(d)"], made, seed=seed)["x"]["sum(d)"] for seed in range(5)}
        assert sums == {math.fsum(values)}


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([NAN, 1.0], NAN), ([float("inf"), 1.0], float("inf")), ([float("inf"), float("-inf")], NAN), ([1e300, 1e300], 2e300),
        ([1e308, 1e308], float("inf")), ([5e-324, 5e-324], 1e-323), ([-0.0], 0.0), ([1.5, 1e-200], 1.5), ([5.0, -4.9], 5.0 - 4.9),
        ([2.0**89, 2.0**89, -(2.0**90)], 0.0),
    ],
)  # fmt: skip
def test_floats_beyond_the_exact_range_add_up_as_floats_do(values: list[float], total: float) -> None:
    found = aggregated(["sum(d)"], frame([{"k": "x", "at": START, "d": value} for value in values]), seed=1)["x"]["sum(d)"]
    assert found == pytest.approx(total, rel=0, abs=0, nan_ok=True)


def test_a_variance_of_numbers_far_from_zero_keeps_its_digits() -> None:
    values = [1e9 + step / 8 for step in range(1_000)]
    made = frame([{"k": "x", "at": START, "d": value} for value in values])
    for seed in seeds(5):
        assert aggregated(["var_pop(d)"], made, seed=seed)["x"]["var_pop(d)"] == pytest.approx(statistics.pvariance(values), rel=1e-8)


def test_nan_and_infinity_are_values_like_others_where_spark_has_it_so() -> None:
    made = frame([{"k": "x", "at": START, "d": value} for value in (NAN, 1.0, NAN, float("inf"), -0.0, 0.0)])
    texts = ["collect_set(d)", "count(distinct d)", "approx_count_distinct(d)", "approx_percentile(d, 1.0)", "stddev(d)", "max_by(d, d, 2)"]
    found = aggregated(texts, made, seed=3)["x"]
    distinct = found["collect_set(d)"]
    assert distinct[:3] == [0.0, 1.0, float("inf")]
    assert math.isnan(distinct[3])
    assert found["count(distinct d)"] == found["approx_count_distinct(d)"] == 4
    assert math.isnan(found["approx_percentile(d, 1.0)"])
    assert math.isnan(found["stddev(d)"])
    assert all(math.isnan(value) for value in found["max_by(d, d, 2)"])


def test_what_is_collected_has_a_bound_and_beyond_it_the_result_says_so() -> None:
    made = frame([{"k": key, "at": START, "i": value} for key, many in (("x", 4), ("y", 5)) for value in range(many)])
    for text in ("collect_list(i, 4)", "collect_set(i, 4)"):
        found = aggregated([text], made, seed=2)
        assert found["x"] == {text: [0, 1, 2, 3]}
        assert found["y"][FAULT] == f"{text} has more than 4 values"


class Geometric(Aggregate):
    state: ClassVar = {"logs": "double", "count": "bigint"}
    returns = "double"
    additive = True

    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        (value,) = values
        return {"logs": value.log().sum(), "count": value.count()}

    def finish(self, state: Any) -> pl.Expr:
        return pl.when(state["count"] > 0).then((state["logs"] / state["count"]).exp())


class Widest(Aggregate):
    """The longest step between two neighbors: its state is a list."""

    state: ClassVar = {"values": "array<int>"}
    returns = "int"

    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        return {"values": values[0].drop_nulls().sort()}

    def merge(self, state: Any) -> dict[str, pl.Expr]:
        return {"values": state["values"].explode(empty_as_null=False).sort()}

    def finish(self, state: Any) -> pl.Expr:
        return state["values"].list.diff().list.max()


def test_an_aggregate_of_ones_own_is_computed_like_the_others() -> None:
    made = rows(11, 80)
    texts = ["geometric(abs(cast(i as bigint)) + 1)", "widest(i) filter (where b)", "round(geometric(2.0d), 3)"]
    found = aggregated(texts, frame(made), seed=5, own={"Geometric": Geometric(), "widest": Widest()})
    for key, group in grouped(made).items():
        numbers = [abs(value) + 1 for value in known(group, "i")]
        assert found[key]["geometric(abs(cast(i as bigint)) + 1)"] == pytest.approx(math.prod(numbers) ** (1 / len(numbers)))
        ordered = sorted(known([row for row in group if row["b"]], "i"))
        steps = [high - low for low, high in pairwise(ordered)]
        assert found[key]["widest(i) filter (where b)"] == max(steps, default=None)
        assert found[key]["round(geometric(2.0d), 3)"] == 2.0
