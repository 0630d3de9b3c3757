"""Spark's column text and Arrow schemas mean the same in both directions."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.columns.schema import TIMESTAMP, data_type, ddl, schema, type_name
from headrace.core.errors import SchemaError

SIMPLE = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"]
names = st.text(st.characters(exclude_categories=["C"], codec="utf-8"), min_size=1, max_size=8)
types = st.recursive(
    st.sampled_from([*SIMPLE, "decimal(10,2)", "decimal(38,38)"]).map(data_type),
    lambda inner: st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        st.tuples(inner, inner).map(lambda pair: pa.map_(*pair)),
        st.lists(st.tuples(names, inner, st.booleans()), min_size=1, max_size=3, unique_by=lambda field: field[0]).map(
            lambda fields: pa.struct([pa.field(name, kind, nullable=nullable) for name, kind, nullable in fields])
        ),
    ),
    max_leaves=6,
)
columns = st.lists(st.tuples(names, types, st.booleans()), min_size=1, max_size=5, unique_by=lambda column: column[0])


@given(columns)
def test_every_schema_reads_back_from_its_own_text(fields):
    written = pa.schema([pa.field(name, kind, nullable=nullable) for name, kind, nullable in fields])
    assert schema(ddl(written)).equals(written)


def test_columns_are_read_with_nullability_comments_and_any_case():
    read = schema("url STRING NOT NULL COMMENT 'it''s', `odd ``name` Array<Struct<a: Int, b: Map<string, decimal(4)>>>, at Timestamp")
    assert read.names == ["url", "odd `name", "at"]
    assert not read.field("url").nullable
    assert read.field("at").type == TIMESTAMP


def test_a_mapping_and_a_schema_are_schemas_too():
    expected = schema("a int, b double")
    assert schema({"a": "int", "b": pa.float64()}) == expected
    assert schema(expected) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends too early"),
        ("a", "ends too early"),
        ("a int,", "ends too early"),
        ("a int b", "left over"),
        ("a number", "'number' is not a type"),
        ("a array<int", "expected '>', found 'the end'"),
        ("a decimal(x)", "expected a number"),
        ("a decimal(39,0)", "precision from 1 to 38"),
        ("a decimal(2,3)", "precision from 1 to 38"),
        ("a decimal(5,2,1)", "precision from 1 to 38"),
        ("a int; drop", "cannot read"),
        ("<a int", "expected a column name"),
    ],
)
def test_text_that_is_no_column_list_is_refused_with_the_reason(text, reason):
    with pytest.raises(SchemaError) as refusal:
        schema(text)
    assert reason in refusal.value.fact
    assert "Spark DDL" in refusal.value.hint


def test_a_column_declared_twice_is_refused_by_name():
    with pytest.raises(SchemaError, match="'a' is declared twice"):
        schema("a int, b int, a string")


def test_an_arrow_type_that_spark_lacks_is_refused():
    with pytest.raises(SchemaError, match="uint64 has no Spark type"):
        type_name(pa.uint64())


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.large_binary(), pa.large_list(pa.int8()), pa.timestamp("ns", "UTC")]
)
def test_arrow_variants_have_the_name_of_their_plain_type(kind):
    assert type_name(kind) in ("string", "binary", "array<tinyint>", "timestamp")
