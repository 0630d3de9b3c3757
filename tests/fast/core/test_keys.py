"""Keys land where Kafka's own clients would put them."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.keys import encode_keys, murmur2, partitions_of
from headrace.log import Log

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
