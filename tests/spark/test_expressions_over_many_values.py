"""Expressions for which a handful of values proves little: every letter, every time zone, very many doubles."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from headrace.operators.expressions import evaluate
from headrace.plan.expressions import check, parse

LETTERS = [chr(code) for code in (*range(0xD800), *range(0xF900, 0x20000), *range(0xE0000, 0xE0200))]
CLOCKS = [
    "0050-01-01 00:00:00", "1883-11-18 12:03:58", "1940-06-15 00:00:00", "1969-12-31 23:59:59", "2007-03-11 02:30:00",
    "2024-03-31 02:30:00",
    "2024-10-27 02:30:00", "2024-11-03 01:30:00", "2037-07-01 00:00:00", "2100-03-28 02:30:00", "12000-07-01 12:00:00",
]  # fmt: skip


def differing(spark, table: pa.Table, texts: list[str]) -> dict[str, int]:
    """For each expression the rows that differ from Spark; none of them may raise."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    good, bad = evaluate(frame, {text: check(parse(text), table.schema) for text in texts})
    assert bad.height == 0
    theirs = spark.createDataFrame(table).selectExpr(*(f"{text} as c{place}" for place, text in enumerate(texts))).toArrow()
    judged = [pl.from_arrow(theirs.column(place)) for place in range(len(texts))]
    counts = {text: int(good[text].ne_missing(other).sum()) for text, other in zip(texts, judged, strict=True)}
    return {text: count for text, count in counts.items() if count}


def test_every_letter_changes_its_case_as_in_spark(spark):
    texts = [
        "upper(c)",
        "lower(c)",
        "upper('a' || c || 'b')",
        "lower('A' || c || 'B')",
        "lower(c || 'Σ')",
        "lower('AΣ' || c)",
        "lower('AΣ' || c || 'A')",
    ]
    assert differing(spark, pa.table({"c": LETTERS}), texts) == {}


def test_every_time_zone_of_java_is_read_as_in_spark(spark):
    names = sorted(name for name in spark._jvm.java.time.ZoneId.getAvailableZoneIds() if not name.startswith("SystemV"))
    table = pa.table({"w": [f"{clock} {name}" for name in names for clock in CLOCKS]})
    assert len(names) > 500
    assert differing(spark, table, ["unix_micros(try_cast(w as timestamp))"]) == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_doubles_are_rounded_as_in_spark(spark, seed):
    random = np.random.default_rng(seed)
    doubles = np.concatenate([
        random.uniform(-1e3, 1e3, 20_000), random.integers(-(10**8), 10**8, 20_000) / 1000, random.integers(-(10**12), 10**12,
        20_000) / 2000,
        np.round(random.uniform(1e9, 2e9, 20_000), 6), random.uniform(1e11, 5e15, 20_000), np.exp(random.uniform(-40, 45, 20_000)),
        2.0 ** random.integers(-60, 60, 1000), random.integers(1, 10**15, 20_000) / 10.0 ** random.integers(0, 15, 20_000),
    ])  # fmt: skip
    texts = ["round(d)", "round(d, 2)", "round(d, 6)", "round(d, 15)", "bround(d, 2)", "bround(d, 5)", "try_cast(d as decimal(18,2))"]
    assert differing(spark, pa.table({"d": doubles}), [*texts, "try_cast(d as decimal(31,15))", "d / 3", "d / 1e6"]) == {}


def test_exponentials_and_logarithms_have_sparks_last_digit(spark):
    random = np.random.default_rng(3)
    ends = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 0.5, -2.0, 3.0, 5e-324, 2.2e-308, 1.7e308, 1e-10, 709.79, 745.2, 1e23, 1074.0]
    )
    pairs = np.array(np.meshgrid(ends, np.concatenate([ends, [2.0**31, 2.0**33, 2.0**65, 2.0**53 + 1, -1.5, 1e-300]]))).reshape(2, -1)
    bits = random.integers(0, 2**63 - 1, 30_000, dtype=np.int64).view(np.float64)
    x = np.concatenate(
        [pairs[0], random.uniform(0, 10, 30_000), np.exp(random.uniform(-700, 700, 30_000)), bits, random.uniform(0.9, 1.1, 30_000)]
    )
    y = np.concatenate([pairs[1], random.uniform(-10, 10, 30_000), random.uniform(-2, 2, 60_000), random.uniform(-1e10, 1e10, 30_000)])
    table = pa.table({"x": x, "y": y, "z": random.uniform(-746, 710, len(x))})
    assert (
        differing(spark, table, ["exp(x)", "exp(z)", "ln(x)", "log10(x)", "log2(x)", "log(x, y)", "pow(x, y)", "degrees(x)", "radians(z)"])
        == {}
    )
