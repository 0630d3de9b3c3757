"""Windowed aggregates equal Spark's own over the same rows, in type and in every bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.core.columns.schema import schema
from headrace.testing.driver import TestDriver
from tests.support.agreement import _bits, _plain
from tests.support.near import near

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = schema(
    "k string, at timestamp, y tinyint, i int, l bigint, f float, d double, m decimal(5,2), o decimal(28,6), p decimal(38,18), "
    "q decimal(38,0), s string, b boolean, a date"
)
VALUES: dict[str, list[Any]] = {
    "k": ["x", "y", "", None],
    "y": [None, 0, 127, -128, 5],
    "i": [None, 0, 1, -1, 2147483647, -2147483648, 12],
    "l": [None, 0, 1, -1, 2**53, -(2**53), 2**60, -(2**60), 7],
    "f": [None, 0.5, -1.25, float("nan"), 3.0, 1024.0],
    "d": [None, 0.0, 0.5, -2.5, float("nan"), 1024.0, 3.0, float("inf")],
    "m": [None, "0.00", "999.99", "-999.99", "0.01", "33.33"],
    "o": [None, "1.000001", "-2.500000", "9999999999999999999999.999999", "0.333333"],
    "p": [None, "0.000000000000000001", "123456789012345.123456789012345678", "-0.5", "1"],
    "q": [None, "9" * 33, "-" + "9" * 33, "1", "123456789012345678901234567890123"],
    "s": [None, "", "a", "B", "ß", "😀", "aa"],
    "b": [None, True, False],
    "a": [None, date(2024, 2, 29), date(1969, 12, 31), date(2024, 3, 1)],
}
NUMBERS = ("y", "i", "l", "f", "d", "m", "o", "p", "q")
_IN_TIME = "transform(array_sort(collect_list(struct(at, {value} as value)) filter (where {value} is not null)), pair -> pair.value)"
KNOWN = "filter (where {by} is not null)"

# Ours on the left. Spark's first and last follow the order of rows, and of equals its min_by takes any: both are spelled out.
SAME = {
    **{f"{name}({column})": None for column in NUMBERS for name in ("sum", "avg")},
    **{f"{name}({column})": None for column in (*NUMBERS, "s", "b", "a", "at") for name in ("min", "max", "count")},
    "count(*)": None,
    "count_if(i > 0)": None,
    "count(*) filter (where b)": None,
    "sum(l) filter (where i > 0)": None,
    "avg(m) filter (where not b)": None,
    "max(s) filter (where d > 1)": None,
    "sum(i + 1L) / count(*)": None,
    "round(avg(d), 2)": None,
    # Spark adds doubles in the order of the rows here, and loses digits; the exact sum does not depend on the order.
    "avg(l)": "cast(sum(cast(l as decimal(20,0))) as double) / count(l)",
    **{f"first({column})": f"min_by({column}, at)" for column in ("i", "s", "d", "p")},
    **{f"last({column})": f"max_by({column}, at)" for column in ("i", "s", "d", "p")},
    "last(s) filter (where b)": "max_by(s, at) filter (where b)",
    "min_by(s, d)": "min_by(s, struct(d, s is null, s)) " + KNOWN.format(by="d"),
    "max_by(y, m)": "max_by(y, struct(m, y is not null, -cast(y as int))) " + KNOWN.format(by="m"),
    **{f"count(distinct {column})": None for column in (*NUMBERS, "s", "b", "a", "at")},
    "count(distinct s, y)": None,
    "count(distinct i) filter (where b)": None,
    **{f"{name}(b)": None for name in ("bool_and", "bool_or", "every", "some", "any")},
    "bool_and(i > 0) filter (where b)": None,
    "first(s, true)": "min_by(s, at) filter (where s is not null)",
    "last(s) ignore nulls": "max_by(s, at) filter (where s is not null)",
    "any_value(s)": "min_by(s, at)",
    "last(d, true) filter (where b)": "max_by(d, at) filter (where b and d is not null)",
    # Both are in no order there.
    **{f"collect_list({column})": _IN_TIME.format(value=column) for column in ("i", "d", "m", "s", "b", "a")},
    "array_agg(l) filter (where b)": _IN_TIME.format(value="if(b, l, null)"),
    **{f"collect_set({column})": f"array_sort(collect_set({column}))" for column in (*NUMBERS, "s", "b", "a")},
    "collect_list(distinct s)": "array_sort(collect_set(s))",
    "max_by(s, at, 3)": None,
    "min_by(i, at, 100) filter (where b)": None,
    **{f"approx_percentile({column}, 0.5)": None for column in ("y", "i", "l", "m", "a", "at")},
    # NaN comes to stand anywhere there when partial results are merged.
    "approx_percentile(f, 0.5) filter (where not isnan(f))": None,
    "percentile_approx(d, array(0.0, 0.3, 0.99, 1.0)) filter (where not isnan(d))": None,
    "approx_percentile(m, array(0.1, 0.9), 100) filter (where b)": None,
    **{f"approx_count_distinct({column})": None for column in (*NUMBERS, "s", "b", "a")},
    "approx_count_distinct(at, 0.01)": None,
    "array(min(i), max(i), sum(y))": None,
    "named_struct('low', min(d), 'high', max(d))": None,
    "max_by(y, s) filter (where b)": "max_by(y, struct(s, y is not null, -cast(y as int))) filter (where b and s is not null)",
}

# Sums of squares are rounded in the order of the rows there.
NEAR = [f"{name}({column})" for name in ("stddev", "stddev_pop", "variance", "var_pop") for column in NUMBERS]
# Of equal counts it takes any first.
UNORDERED = [*(f"approx_top_k({column}, 50)" for column in ("i", "l", "m", "s", "b", "a")), "approx_top_k(s, 50, 100) filter (where b)"]


def rows(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    times = chance.sample(range(240), 160)
    made = []
    for second in times:
        row = {name: chance.choice(values) for name, values in VALUES.items()} | {"at": NOON + timedelta(seconds=second)}
        made.append({name: Decimal(row[name]) if name in "mopq" and row[name] is not None else row[name] for name in COLUMNS.names})
    return made


def ours(made: list[dict[str, Any]], seed: int, texts: Sequence[str]) -> dict[Any, list[Any]]:
    app = Declaration("aggregates")
    stream = app.stream("rows", COLUMNS, key="k", time="at", watermark=bounded("1 day"))
    outputs = {f"c{place}": text for place, text in enumerate(texts)}
    app.view("found", stream.window(tumbling("1 minute"), by="k").agg(**outputs))
    with TestDriver(app, shards=3, partitions=2) as driver:
        for start in range(0, len(made), 23):
            driver.send("rows", made[start : start + 23])
            if start % 2 == seed % 2:
                driver.restart()
        driver.end()
        assert driver.dead_letters("rows") == []
        return by_window(driver.rows("found"), len(texts))


def sparks(spark: SparkSession, made: list[dict[str, Any]], texts: Sequence[str]) -> dict[Any, list[Any]]:
    table = pa.Table.from_pylist(made, schema=COLUMNS)
    grouped = spark.createDataFrame(table).groupBy(sql.window("at", "1 minute").start.alias("window_start"), "k")
    judged = grouped.agg(*(sql.expr(text).alias(f"c{place}") for place, text in enumerate(texts)))
    return by_window(judged.toArrow().to_pylist(), len(texts))


def by_window(found: list[dict[str, Any]], columns: int) -> dict[Any, list[Any]]:
    return {(row["k"], row["window_start"]): [row[f"c{place}"] for place in range(columns)] for row in found}


def differing(
    mine: dict[Any, list[Any]], theirs: dict[Any, list[Any]], texts: Sequence[str], same: Callable[[Any, Any], bool]
) -> list[Any]:
    assert mine.keys() == theirs.keys()
    return [
        (text, key, one, two)
        for key, values in mine.items()
        for text, one, two in zip(texts, values, theirs[key], strict=True)
        if not same(one, two)
    ]


def test_windowed_aggregates_equal_sparks_over_the_same_rows(spark: SparkSession) -> None:
    # Other keys for each seed, all in one query: to compile it costs Spark more than its rows.
    made = rows(1) + [row | {"k": f"{row['k']} of {seed}"} for seed in (2, 3) for row in rows(seed)]
    theirs = sparks(spark, made, [text or mine for mine, text in SAME.items()])
    assert differing(ours(made, 1, list(SAME)), theirs, list(SAME), lambda one, two: _bits(one) == _bits(two)) == []


def test_variances_equal_sparks_but_for_the_last_digits(spark: SparkSession) -> None:
    made = rows(4)
    assert differing(ours(made, 4, NEAR), sparks(spark, made, NEAR), NEAR, near) == []


def test_the_most_frequent_values_equal_sparks_but_for_the_order_of_equals(spark: SparkSession) -> None:
    made = rows(5)
    mine, theirs = ours(made, 5, UNORDERED), sparks(spark, made, UNORDERED)
    assert differing(mine, theirs, UNORDERED, lambda one, two: sorted(map(repr, one)) == sorted(map(repr, two))) == []
    assert all(counts == sorted(counts, reverse=True) for values in mine.values() for counts in [[pair["count"] for pair in values[0]]])


def test_the_types_of_aggregates_are_sparks(spark: SparkSession) -> None:
    texts = [*SAME, *NEAR, *UNORDERED]
    stream = Declaration("types").stream("rows", COLUMNS, time="at", watermark=bounded("1 day"))
    mine = stream.window(tumbling("1 minute")).agg(**{f"c{place}": text for place, text in enumerate(texts)}).columns
    frame = spark.createDataFrame(pa.Table.from_pylist([], schema=COLUMNS))
    theirs = frame.groupBy("k").agg(*(sql.expr(text).alias(f"c{place}") for place, text in enumerate(texts))).toArrow().schema
    assert {text: _plain(mine.field(f"c{place}").type) for place, text in enumerate(texts)} == {
        text: _plain(theirs.field(f"c{place}").type) for place, text in enumerate(texts)
    }
