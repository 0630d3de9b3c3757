"""Rows are written as JSON without a query, and mean what the query writes."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import polars as pl
import pytest

from headrace.schema.legible import as_json
from headrace.serve.views.row_texts import RowTexts
from tests.support.examples import seeds

KINDS = {
    "flag": pl.Boolean,
    "tiny": pl.Int8,
    "whole": pl.Int64,
    "large": pl.Int128,
    "number": pl.Float64,
    "short": pl.Float32,
    "text": pl.String,
    "raw": pl.Binary,
    "day": pl.Date,
    "at": pl.Datetime("us", "UTC"),
    "local": pl.Datetime("us"),
    "milli": pl.Datetime("ms", "UTC"),
    "price": pl.Decimal(18, 4),
    "list": pl.List(pl.Int64),
    "struct": pl.Struct({"a": pl.String}),
}
FLAT = {name: kind for name, kind in KINDS.items() if name not in ("short", "milli", "list", "struct")}
ODD = {
    "flag": [True, False],
    "tiny": [-128, 127],
    "whole": [0, -1, 2**63 - 1, -(2**63)],
    "large": [2**100, -(2**100)],
    "number": [0.0, -0.0, 1e16, 1e300, 5e-324, 0.1, -1e-7, float("nan"), float("inf"), float("-inf"), 123456789012345680.0],
    "short": [0.1, 1e30],
    "text": ["", 'a"b\\c', "\x00\x1f\x7f\n\r\t\b\f/", "é😀\u2028", "</script>"],
    "raw": [b"", b"\xff\x00", b"abcd"],
    "day": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)],
    "at": [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    "local": [datetime(2026, 1, 1, 12, 0, 0, 120_000), datetime(1969, 12, 31, 23, 59, 59, 999_990)],  # noqa: DTZ001
    "milli": [datetime(2026, 1, 1, tzinfo=UTC)],
    "price": [Decimal("0"), Decimal("-0.0001"), Decimal("12345678901234.5000")],
    "list": [[1, None], []],
    "struct": [{"a": "x"}, {"a": None}],
}


def rows_of(kinds, random, count):
    return pl.DataFrame(
        {name: pl.Series([random.choice([None, *ODD[name]]) for _ in range(count)], dtype=kind) for name, kind in kinds.items()}
    )


def same(frame):
    texts = RowTexts(frame.schema).of(frame)
    assert [json.loads(text) for text in texts] == [json.loads(text) for text in as_json(frame)]
    others = [name for name, kind in frame.schema.items() if not kind.is_float()]
    if others:
        # Where no number is written in two ways, the texts themselves are the same.
        plain = frame.select(others)
        assert RowTexts(plain.schema).of(plain) == as_json(plain).to_list()


@pytest.mark.parametrize("seed", seeds(80))
def test_rows_of_any_types_are_written_as_a_query_writes_them(seed):
    random = Random(seed)
    for kinds in (FLAT, KINDS):
        names = random.sample(sorted(kinds), random.randint(1, len(kinds)))
        same(rows_of({name: kinds[name] for name in names}, random, random.choice([1, 3, 150])))


def test_moments_outside_of_the_years_1_to_9999_are_their_numbers():
    numbers = [-62_135_596_800_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999, 253_402_300_800_000_000, 2**63 - 1, -(2**63)]
    same(pl.DataFrame({"at": pl.Series(numbers).cast(pl.Datetime("us", "UTC"))}))
    days = [-719_163, -719_162, 2_932_896, 2_932_897, 2**31 - 1]
    same(pl.DataFrame({"day": pl.Series(days, dtype=pl.Int32).cast(pl.Date)}))


def test_odd_names_of_columns_are_written_as_a_query_writes_them():
    same(pl.DataFrame({'a"b': [1], "c\n": ["x"], "é": [True], "": [None]}, schema_overrides={"": pl.Int64}))


def test_no_rows_are_no_texts():
    assert RowTexts(pl.Schema({"a": pl.Int64})).of(pl.DataFrame({"a": pl.Series([], dtype=pl.Int64)})) == []
