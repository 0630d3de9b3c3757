"""Values of JSON and CSV become those of columns, or are refused with their type."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.columns.schema import data_type, schema
from headrace.schema.legible import as_json
from headrace.schema.values import json_reader, text_reader

MOMENT = datetime(2026, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "ü", "ü"),
        ("string", None, None),
        ("bigint", -(2**63), -(2**63)),
        ("tinyint", 127, 127),
        ("double", 1, 1.0),
        ("double", 1.5, 1.5),
        ("boolean", False, False),
        ("binary", "ü", "ü".encode()),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("timestamp", "2026-01-01T10:00:00Z", MOMENT),
        ("timestamp", "2026-01-01T12:00:00+02:00", MOMENT),
        ("timestamp", "2026-01-01 10:00:00", MOMENT),
        ("timestamp(s)", 1_767_261_600, MOMENT),
        ("timestamp(s)", 1_767_261_600.5, MOMENT.replace(microsecond=500_000)),
        ("timestamp(ms)", 1_767_261_600_000, MOMENT),
        ("timestamp(us)", 1_767_261_600_000_000, MOMENT),
        ("timestamp(ms)", "2026-01-01T10:00:00Z", MOMENT),
        ("timestamp_ntz(ms)", 1_767_261_600_000, MOMENT.replace(tzinfo=None)),
        ("struct<at:timestamp(s)>", {"at": 1_767_261_600}, {"at": MOMENT}),
        ("array<timestamp(s)>", [1_767_261_600], [MOMENT]),
        ("timestamp_ntz", "2026-01-01T12:00:00+02:00", MOMENT.replace(tzinfo=None)),
        ("timestamp_ntz", "2026-01-01T10:00:00", MOMENT.replace(tzinfo=None)),
        ("decimal(10,2)", 1.1, Decimal("1.1")),
        ("decimal(10,2)", "99999999.99", Decimal("99999999.99")),
        ("array<int>", [1, None], [1, None]),
        ("map<string,int>", {"a": 1}, [("a", 1)]),
        ("map<int,string>", {"1": "a"}, [(1, "a")]),
        ("map<int,string>", [{"key": 1, "value": "a"}, [2, None]], [(1, "a"), (2, None)]),
        ("struct<a:int,b:array<date>>", {"a": 1, "b": ["2026-01-01"]}, {"a": 1, "b": [date(2026, 1, 1)]}),
    ],
)
def test_a_json_value_fits_its_column(kind, value, expected):
    read = json_reader(schema(f"x {kind}").field(0))(value)
    assert read == expected
    pa.array([read], data_type(kind))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 5), ("string", ["x"]), ("bigint", "5"), ("bigint", 5.0), ("bigint", True), ("bigint", 2**63), ("tinyint", 128),
        ("double", "1"), ("double", True), ("boolean", 1), ("boolean", "true"), ("binary", 1), ("date", "tomorrow"), ("date", 5),
        ("timestamp", "noon"), ("timestamp", 1.5), ("timestamp", True), ("timestamp", 1_767_261_600), ("timestamp", "1767261600"),
        ("timestamp(ms)", True),
        ("timestamp(ms)", "1767261600"), ("timestamp(s)", 1_767_261_600_000), ("timestamp(us)", 2**63), ("timestamp(s)", float("nan")),
        ("decimal(10,2)", 1.111), ("decimal(3,2)", 10),
        ("decimal(10,2)", "x"), ("decimal(10,2)", "NaN"), ("decimal(10,2)", True), ("array<int>", "x"), ("array<int>", ["x"]),
        ("map<string,int>", [1]), ("map<string,int>", [["a"]]), ("map<string,int>", [[None, 1]]),
        ("map<string,int>", [{"key": "a"}]), ("struct<a:int>", {"b": 1}), ("struct<a:int>", 5),
        ("double", 10**400), ("float", -(10**400)), ("decimal(10,2)", "1e999999"), ("decimal(10,2)", "-1e999999"),
        ("timestamp", "0001-01-01T00:00:00+14:00"), ("timestamp", "9999-12-31T23:59:59-14:00"),
    ],
)  # fmt: skip
def test_a_json_value_of_another_type_is_refused(kind, value):
    with pytest.raises(ValueError, match=r"is not|without a unit|outside of the years"):
        json_reader(schema(f"x {kind}").field(0))(value)


def test_a_record_that_was_made_legible_is_read_as_it_was():
    columns = schema("raw binary, many array<binary>, by map<string,binary>, deep struct<m:map<int,binary>,at:timestamp>, none binary")
    row = {"raw": b"\x00\xff", "many": [b"AP8=", b""], "by": [("a", b"\xff")], "deep": {"m": [(1, b"b")], "at": MOMENT}, "none": None}
    frame = pl.from_arrow(pa.Table.from_pylist([row], columns))
    shown = json.loads(as_json(frame)[0])
    assert {field.name: json_reader(field, legible=True)(shown[field.name]) for field in columns} == row
    with pytest.raises(ValueError):
        json_reader(columns.field(0), legible=True)("no base64")


@pytest.mark.parametrize(
    ("kind", "cell", "expected"),
    [
        ("string", "", ""), ("string", " x ", " x "), ("int", "17", 17), ("int", "", None), ("double", "1e3", 1000.0),
        ("double", "-Infinity", float("-inf")),
        ("boolean", "Yes", True), ("boolean", "0", False), ("timestamp", "2026-01-01T10:00:00Z", MOMENT), ("date", "", None),
        ("timestamp(ms)", "1767261600000", MOMENT), ("timestamp(s)", " 1767261600.0", MOMENT),
        ("timestamp(s)", "2026-01-01T10:00:00Z", MOMENT),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
        ("array<int>", "[1, 2]", [1, 2]), ("map<string,int>", "", None),
    ],
)  # fmt: skip
def test_a_cell_fits_its_column(kind, cell, expected):
    assert text_reader(schema(f"x {kind}").field(0))(cell) == expected


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", "1.5"), ("int", "x"), ("double", "1e400"), ("boolean", "maybe"), ("date", "x"), ("array<int>", "[1"), ("tinyint", "300"),
        ("array<int>", "[" * 100_000), ("timestamp", "0001-01-01T00:00:00+14:00"),
    ],
)  # fmt: skip
def test_a_cell_of_another_type_is_refused(kind, cell):
    with pytest.raises(ValueError):
        text_reader(schema(f"x {kind}").field(0))(cell)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=4,
)
KINDS = [
    "string", "bigint", "smallint", "double", "boolean", "binary", "date", "timestamp", "decimal(10,2)", "array<int>",
    "map<string,double>", "struct<a:int>",
]  # fmt: skip


@given(st.sampled_from(KINDS), anything)
def test_what_a_reader_returns_arrow_accepts(kind, value):
    try:
        read = json_reader(schema(f"x {kind}").field(0))(value)
    except ValueError:
        return
    try:
        pa.array([read], data_type(kind))
    except UnicodeEncodeError:  # half of a surrogate pair: the producer refuses it
        assert any("\ud800" <= letter <= "\udfff" for letter in str(value))
    except OverflowError:  # a number of microseconds that no time has: the producer refuses it
        assert kind == "timestamp"
