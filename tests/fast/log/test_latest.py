"""The latest records of each key."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.upkeep.latest import LatestRecords, latest_by_key

NUMBERS = st.lists(st.integers(0, 200), unique=True)
KEYS = st.lists(st.lists(st.sampled_from([None, b"", b"a", b"b", b"ab", *(b"key-%d" % number for number in range(30))])), max_size=8)


@given(NUMBERS, st.integers(0, 200), st.integers(0, 200))
def test_a_mark_is_found_where_it_was_set(numbers, first, last):
    marks = LatestRecords(201)
    marks.set(pa.array(numbers, pa.int64()).to_numpy())
    assert marks.between(first, max(first, last)).tolist() == [number in numbers for number in range(first, last)]


@pytest.mark.parametrize("memory", [1 << 20, 400])
@given(batches=KEYS)
def test_the_last_record_of_each_key_is_marked_whatever_the_memory(memory, batches):
    def scan():
        first = 0
        for batch in batches:
            yield first, [pa.array(batch, pa.binary())]
            first += len(batch)

    keys = [key for batch in batches for key in batch]
    marks = latest_by_key(scan, len(keys), memory)
    last = {key: number for number, key in enumerate(keys)}
    assert marks.between(0, len(keys)).tolist() == [key is None or last[key] == number for number, key in enumerate(keys)]


def test_keys_of_several_columns_are_told_apart_by_all_of_them():
    columns = [pa.array([b"a", b"a", b"a", None]), pa.array([b"x", b"y", b"x", b"x"])]
    assert latest_by_key(lambda: [(0, columns)], 4).between(0, 4).tolist() == [False, True, True, True]


def test_more_keys_than_the_memory_holds_take_more_passes_and_no_more_memory():
    keys, passes = 60_000, []
    batches = [pa.array([b"%016d" % (number % keys) for number in range(first, first + 6_000)]) for first in range(0, 2 * keys, 6_000)]

    def scan():
        passes.append(1)
        yield from ((number * 6_000, [batch]) for number, batch in enumerate(batches))

    memory = 256 * 1024
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    try:
        marks = latest_by_key(scan, 2 * keys, memory)
    finally:
        pa.set_memory_pool(usual)
    assert not marks.between(0, keys).any()
    assert marks.between(keys, 2 * keys).all()
    assert len(passes) > 8
    assert 0 < pool.max_memory() < 5 * memory
