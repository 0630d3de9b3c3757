"""JSON records as columns: what is taken, what is refused and why, and that neighbors never matter."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.columns.schema import schema
from headrace.schema.codecs.json import JsonCodec
from tests.support.examples import examples

COLUMNS = schema(
    "a bigint, b string, d double, t timestamp, n struct<x:int, deep:struct<y:string>>, l array<int>, f boolean, "
    "price decimal(10,2), day date, raw binary, m map<string,int>, small tinyint, local timestamp_ntz, "
    "ms timestamp(ms), w struct<s:timestamp(s)>"
)
PLAIN = pa.schema([column for column in COLUMNS if column.name != "m"])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

GOOD = [
    (b'{"a":1}', {"a": 1}),
    (b"{}", {}),
    (b'{"a":null,"b":null}', {}),
    (b'{"z":1,"A":2}', {}),
    (b'{"z":{"q":[1,"a",{}]},"a":3}', {"a": 3}),
    (b'{"z":1,"z":2,"a":3}', {"a": 3}),
    (b' {"a":1}\r\n', {"a": 1}),
    (b'{\n "a":\n 1\n}', {"a": 1}),
    (b'{"a":9223372036854775807}', {"a": 2**63 - 1}),
    (b'{"a":-9223372036854775808}', {"a": -(2**63)}),
    (b'{"d":5}', {"d": 5.0}),
    (b'{"d":123456789012345678901234567890}', {"d": 1.2345678901234568e29}),
    (b'{"d":Infinity}', {"d": math.inf}),
    ('{"b":"grüße 😀"}'.encode(), {"b": "grüße 😀"}),
    (b'{"b":"\\ud83d\\ude00\\u0000\\n"}', {"b": "😀\0\n"}),
    (b'{"\\u0061":1}', {"a": 1}),
    (b'{"t":"2026-01-01T12:00:00Z"}', {"t": NOON}),
    (b'{"t":"2026-01-01T14:00:00+02:00"}', {"t": NOON}),
    (b'{"t":"2026-01-01 12:00:00"}', {"t": NOON}),
    (b'{"t":"2026-01-01T12:00:00.000000999Z"}', {"t": NOON}),
    (b'{"ms":1767268800000}', {"ms": NOON}),
    (b'{"ms":1767268800000.0}', {"ms": NOON}),
    (b'{"ms":"2026-01-01T12:00:00Z"}', {"ms": NOON}),
    (b'{"w":{"s":1767268800}}', {"w": {"s": NOON}}),
    (b'{"w":{"s":1767268800.5}}', {"w": {"s": NOON.replace(microsecond=500_000)}}),
    (b'{"w":{"s":"2026-01-01T12:00:00Z"}}', {"w": {"s": NOON}}),
    (b'{"w":null,"ms":null}', {}),
    (b'{"local":"2026-01-01T14:00:00+02:00"}', {"local": NOON.replace(tzinfo=None)}),
    (b'{"n":{"x":1,"more":2,"deep":{"y":"q","z":0}}}', {"n": {"x": 1, "deep": {"y": "q"}}}),
    (b'{"n":{}}', {"n": {"x": None, "deep": None}}),
    (b'{"l":[1,null,3]}', {"l": [1, None, 3]}),
    (b'{"l":[]}', {"l": []}),
    (b'{"price":1.5}', {"price": Decimal("1.50")}),
    (b'{"price":"1.5"}', {"price": Decimal("1.50")}),
    (b'{"day":"2026-01-02"}', {"day": date(2026, 1, 2)}),
    (b'{"raw":"abc"}', {"raw": b"abc"}),
    (b'{"f":true,"small":-128}', {"f": True, "small": -128}),
    (b'{"z":1e400}', {}),
    (b'{"z":' + b"[" * 400 + b"]" * 400 + b"}", {}),
]
BAD = [
    (b'{"t":1767268800000000}', "column 't': 1767268800000000 is a number without a unit"),
    (b'{"ms":1e300}', "column 'ms': 1e+300 as timestamp(ms) is outside of the years 1 to 9999"),
    (b'{"ms":9223372036854775807}', "outside of the years"),
    (b'{"ms":true}', "column 'ms': True is not of type timestamp"),
    (b'{"w":{"s":1767268800000}}', "column 'w': 1767268800000 as timestamp(s) is outside of the years"),
    (b"", "empty"),
    (b"  \n", "empty"),
    (b"oops", "not JSON"),
    (b"null", "not a JSON object"),
    (b"[1]", "not a JSON object but list"),
    (b'"{}"', "not a JSON object but str"),
    (b'{"a":1}{"a":2}', "Extra data"),
    (b'{"a":1}\n{"a":2}', "Extra data"),
    (b'{"a":1', "not JSON"),
    (b',"b":"x"}', "not JSON"),
    (b'{"a":1}}', "not JSON"),
    (b'{"n":{"x":1}', "not JSON"),
    (b'{"b":"x}', "not JSON"),
    (b'{"a":1,}', "not JSON"),
    (b"{'a':1}", "not JSON"),
    (b'{"a":01}', "not JSON"),
    (b'\xef\xbb\xbf{"a":1}', "not JSON"),
    ('{"a":1}'.encode("utf-16-le"), "not JSON"),
    (b'{"b":"\xff"}', "not UTF-8"),
    (b'{"z":"\xff"}', "not UTF-8"),
    (b'{"b":"\\ud800"}', "do not fit"),
    (b'{"a":"5"}', "column 'a': '5' is not of type bigint"),
    (b'{"a":5.0}', "is not of type bigint"),
    (b'{"a":1e2}', "is not of type bigint"),
    (b'{"a":9223372036854775808}', "9223372036854775808 is not of type bigint"),
    (b'{"a":NaN}', "is not of type bigint"),
    (b'{"a":true}', "is not of type bigint"),
    (b'{"a":1,"a":2}', "column 'a': it occurs twice"),
    (b'{"n":{"x":1,"x":2}}', "column 'n': it occurs twice"),
    (b'{"b":5}', "5 is not of type string"),
    (b'{"d":"5"}', "'5' is not of type double"),
    (b'{"d":1e400}', "1e400 is not of type double"),
    (b'{"t":"yesterday"}', "'yesterday' is not of type timestamp"),
    (b'{"t":1.5}', "1.5 is a number without a unit"),
    (b'{"n":5}', "is not of type struct"),
    (b'{"n":{"x":99999999999}}', "is not of type int"),
    (b'{"l":[1,"a"]}', "'a' is not of type int"),
    (b'{"l":{"0":1}}', "is not of type array<int>"),
    (b'{"f":1}', "is not of type boolean"),
    (b'{"price":"1.555"}', "is not of type decimal(10,2)"),
    (b'{"day":"2026-13-02"}', "is not of type date"),
    (b'{"small":128}', "is not of type tinyint"),
    (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
]


def told(codec: JsonCodec, records: list[bytes]) -> list[object]:
    """For each record its values that are not null, or the reason."""
    decoded = codec.decode(records)
    assert decoded.table.schema.equals(codec.columns)
    decoded.table.validate(full=True)
    rows = dict(zip(decoded.places.tolist(), decoded.table.to_pylist(), strict=True))
    assert sorted([*rows, *decoded.bad]) == list(range(len(records)))
    return [decoded.bad.get(place) or {k: v for k, v in rows[place].items() if v is not None} for place in range(len(records))]


@pytest.mark.parametrize(("record", "expected"), GOOD)
def test_a_good_record_is_taken(record, expected):
    assert told(JsonCodec(PLAIN), [record]) == [expected]
    assert told(JsonCodec(COLUMNS), [record]) == [expected]


@pytest.mark.parametrize(("record", "reason"), BAD)
def test_a_bad_record_is_refused_with_its_reason(record, reason):
    [said] = told(JsonCodec(PLAIN), [record])
    assert isinstance(said, str)
    assert reason in said


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([record for record, _ in [*GOOD, *BAD[:-1]]]), max_size=40))
def test_what_a_record_becomes_does_not_depend_on_its_neighbors(records):
    codec = JsonCodec(PLAIN)
    assert told(codec, records) == [told(codec, [record])[0] for record in records]


@pytest.mark.parametrize("bad", [b"oops", b'{"a":"5"}', b'{"a":5.5}', b'{"a":1}{"a":2}', b"", b'{"t":"never"}', b'{"n":{"x":0.5}}'])
@pytest.mark.parametrize("place", [0, 1, 4_999, 9_999])
def test_one_bad_record_among_many_costs_the_others_nothing(bad, place):
    """Only the bad one is looked at alone: all others are rows in their order."""
    records = [b'{"a":%d,"b":"%s"}' % (number, b"x" * 200) for number in range(10_000)]
    records[place] = bad
    codec = JsonCodec(PLAIN)
    judged = []
    codec._alone = lambda record, alone=codec._alone: (judged.append(record), alone(record))[1]  # type: ignore[method-assign]
    decoded = codec.decode(records)
    assert list(decoded.bad) == [place]
    assert decoded.table["a"].to_pylist() == [number for number in range(10_000) if number != place]
    assert judged in ([bad], [])


def test_records_that_only_together_are_json_stay_apart():
    """One that ends too early and one that begins too late would be a whole object, and another that is two would make up for it."""
    records = [b'{"a":1', b',"b":"x"}', b'{"a":2}{"a":3}', b'{"a":4}']
    said = told(JsonCodec(PLAIN), records)
    assert [isinstance(one, str) for one in said] == [True, True, True, False]


def test_a_record_larger_than_a_block_is_one_like_any_other():
    large = json.dumps({"a": 7, "b": "y" * 3_000_000}).encode()
    decoded = JsonCodec(PLAIN).decode([b'{"a":6}', large, b'{"a":8}'])
    assert decoded.table["a"].to_pylist() == [6, 7, 8]
    assert not decoded.bad


def test_a_column_that_must_have_a_value_makes_a_record_bad_without_one():
    decoded = JsonCodec(schema("a bigint not null, b string")).decode([b'{"a":1}', b'{"b":"x"}', b'{"a":null}', b'{"a":2}'])
    assert decoded.table.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": None}]
    assert decoded.bad == dict.fromkeys([1, 2], "column 'a' has no value, and it is NOT NULL")


def test_maps_are_read_from_objects():
    said = told(JsonCodec(COLUMNS), [b'{"m":{"x":1,"y":null}}', b'{"m":{"x":"1"}}', b'{"a":1}'])
    assert said == [{"m": [("x", 1), ("y", None)]}, "column 'm': '1' is not of type int", {"a": 1}]


def test_nan_is_a_double():
    [row] = JsonCodec(schema("d double")).decode([b'{"d":NaN}']).table.to_pylist()
    assert math.isnan(row["d"])


def test_no_records_are_no_rows():
    assert JsonCodec(PLAIN).decode([]).table.num_rows == 0
