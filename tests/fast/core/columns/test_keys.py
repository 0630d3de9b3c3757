"""Keys land where Kafka's own clients would put them."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.columns.keys import encode_keys, murmur2, partitions_of
from headrace.log import Log
from tests.support.examples import examples

# The vectors of Kafka's UtilsTest.testMurmur2.
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def reference(data: bytes) -> int:
    """Murmur2 as it is published, byte by byte."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = value * multiplier & mask ^ word
    if data[whole:]:
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_the_hash_is_kafkas(key, expected):
    assert murmur2(pa.array([key])).astype("int32").tolist() == [expected]


@given(st.lists(st.binary(max_size=40) | st.none(), max_size=60), st.integers(1, 500), st.integers(0, 5))
def test_whole_columns_hash_as_single_keys_do(keys, count, skipped):
    column = pa.array(keys, pa.binary()).slice(skipped)
    expected = [-1 if key is None else (reference(key) & 0x7FFFFFFF) % count for key in keys[skipped:]]
    assert partitions_of(column, count).tolist() == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["ü", None]), ["ü".encode(), None]),
        (pa.array([b"\x00", b""]), [b"\x00", b""]),
        (pa.array([1, -1, None], pa.int32()), [b"\0\0\0\1", b"\xff\xff\xff\xff", None]),
        (pa.array([1], pa.int64()), [b"\0\0\0\0\0\0\0\1"]),
        (pa.array([1_000_000], pa.timestamp("us", "UTC")), [(1_000_000).to_bytes(8, "big")]),
        (pa.array([True]), [b"true"]),
    ],
)
def test_a_key_column_becomes_the_bytes_of_kafkas_serializers(column, expected):
    assert encode_keys([column]).to_pylist() == expected


def test_several_key_columns_are_one_key():
    assert encode_keys([pa.array(["a", "b"]), pa.array([1, 2])]).to_pylist() == [b'["a",1]', b'["b",2]']


COLUMNS = {
    "text": (st.text(max_size=4) | st.sampled_from(["a", 'b"', "\\", "\x7f", "ü"]), pa.string()),
    "plain": (st.sampled_from(["a", "b c", "~!"]), pa.string()),
    "whole": (st.integers(-(2**40), 2**40), pa.int64()),
    "broken": (st.floats() | st.sampled_from([0.0, -0.0]), pa.float64()),
    "true": (st.booleans(), pa.bool_()),
    "raw": (st.binary(max_size=2), pa.binary()),
    "at": (st.integers(-(10**15), 2**52) | st.integers(0, 10**6).map(lambda second: second * 10**6), pa.timestamp("us", "UTC")),
    "day": (st.dates(), pa.date32()),
    "list": (st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int64())),
}


@settings(max_examples=examples(30))
@given(st.data())
def test_several_key_columns_are_written_as_a_json_array_of_each_row(data):
    chosen = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, max_size=4))
    rows = data.draw(st.integers(0, 5))
    arrays = [
        pa.array(data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for values, kind in map(COLUMNS.get, chosen)
    ]
    each = zip(*(array.to_pylist() for array in arrays), strict=True)
    assert encode_keys(arrays).to_pylist() == [json.dumps(row, default=str, separators=(",", ":")).encode() for row in each]


def test_records_with_one_key_stay_together_and_in_order(tmp_path):
    log = Log(tmp_path)
    log.create_topic("clicks", partitions=8, schema="user string, number int", key="user")
    users = [f"user-{number % 50}" for number in range(1000)]
    with log.producer() as producer:
        for number, user in enumerate(users):
            producer.send("clicks", {"user": user, "number": number})
    stored = log.read("clicks").to_pylist()
    assert len({record["_partition"] for record in stored}) == 8
    for user in set(users):
        mine = [record for record in stored if record["user"] == user]
        assert {record["_partition"] for record in mine} == {(reference(user.encode()) & 0x7FFFFFFF) % 8}
        assert [record["number"] for record in mine] == [number for number, name in enumerate(users) if name == user]


def test_records_without_a_key_are_spread_over_all_partitions_batch_by_batch(tmp_path):
    log = Log(tmp_path)
    log.create_topic("clicks", partitions=4)
    with log.producer() as producer:
        for _ in range(8):
            producer.send_table("clicks", pa.table({"value": pa.array([b"x"] * 10, pa.binary())}))
    partitions = log.read("clicks")["_partition"].to_pylist()
    assert [partitions.count(index) for index in range(4)] == [20, 20, 20, 20]
