"""Groups with numbers are the groups that a hash table finds, and sums over them are as exact."""

import math
import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.numbered_groups import distinct, doubtful, firsts, groups_of, key_numbers
from headrace.operators.aggregates.partials import finishes, partial

TEXTS = some.sampled_from(["", "a", "b", "ü", None])
NUMBERS = some.sampled_from([None, -3, 0, 1, 2, -(2**63), 2**63 - 1])
DAYS = some.sampled_from([datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in (-2, 0, 1, 300)])
FLOATS = some.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda x: x == 0 or 2**-38 <= abs(x) < 2**80)


@given(some.lists(some.tuples(TEXTS, NUMBERS, DAYS, some.booleans()), min_size=1, max_size=60))
def test_records_have_one_number_if_and_only_if_their_keys_are_equal(rows):
    frame = pl.DataFrame(
        rows, schema={"text": pl.String, "number": pl.Int64, "day": pl.Datetime("us", "UTC"), "flag": pl.Boolean}, orient="row"
    )
    groups = groups_of(frame, frame.columns)
    assert groups is not None
    found = {}
    for key, number in zip(frame.rows(), groups.numbers.tolist(), strict=True):
        assert found.setdefault(key, number) == number
    assert sorted(found.values()) == list(range(len(groups)))
    assert [frame.rows()[row] for row in groups.first] == [key for key, _ in sorted(found.items(), key=lambda item: item[1])]
    assert groups.sizes.tolist() == [frame.rows().count(frame.rows()[row]) for row in groups.first]


@pytest.mark.parametrize("key", [pl.Series([0.5, 1.5]), pl.Series([[1], [2]]), pl.Series([], dtype=pl.Int64)])
def test_what_has_no_number_is_left_to_a_hash_table(key):
    assert groups_of(key.to_frame("key"), ["key"]) is None


def test_so_are_keys_with_far_more_combinations_than_records():
    many = pl.concat([pl.int_range(0, 1_000, eager=True)] * 2)
    assert groups_of(pl.DataFrame({"one": many, "other": many}), ["one", "other"]) is None


@given(some.lists(some.tuples(some.sampled_from("xyz"), some.one_of(some.none(), FLOATS)), min_size=1, max_size=40))
def test_a_sum_of_floats_is_what_it_is_by_hand_whatever_their_sizes(rows):
    total = EvaluatedCall("sum", "total", ("value",), kind=pl.Float64())
    frame = pl.DataFrame(rows, schema={"key": pl.String, "value": pl.Float64}, orient="row")
    sums = partial(frame, ["key"], [total]).select("key", *finishes([total]))
    for key, found in sums.rows():
        values = [value for name, value in rows if name == key and value is not None]
        assert found == (math.fsum(values) if values else None)


@given(some.lists(some.tuples(some.sampled_from("xyz"), some.integers(-(2**63), 2**63 - 1), some.booleans()), min_size=1, max_size=40))
def test_a_sum_of_whole_numbers_never_wraps_around(rows):
    total = EvaluatedCall("sum", "total", ("value",), filter="passing", kind=pl.Int64())
    frame = pl.DataFrame(rows, schema={"key": pl.String, "value": pl.Int64, "passing": pl.Boolean}, orient="row")
    for key, found in partial(frame, ["key"], [total]).select("key", "total.sum").rows():
        assert found == sum(value for name, value, passing in rows if name == key and passing)


def test_records_have_the_same_number_if_they_have_the_same_key() -> None:
    chance = random.Random(4)
    choices = {"a": ["x", "y", None], "b": [1, 2**40, None], "c": [0.5, None, 2.0], "d": [[1], [1, 2], None]}
    rows = [{name: chance.choice(few) for name, few in choices.items()} for _ in range(300)]
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.Int64, "c": pl.Float64, "d": pl.List(pl.Int64)})
    for by in (["a"], ["b", "a"], ["c", "a", "b"], ["a", "d"]):
        numbers = key_numbers(frame, by).tolist()
        keys = [repr([row[name] for name in by]) for row in rows]
        assert len(set(zip(keys, numbers, strict=True))) == len(set(keys)) == len(set(numbers))
        assert [numbers[place] for place in firsts(key_numbers(frame, by))] == sorted(set(numbers))


@given(some.lists(some.tuples(some.sampled_from("xyz"), some.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=40))
def test_the_largest_of_each_group_is_found(rows):
    frame = pl.DataFrame(rows, schema={"key": pl.String, "at": pl.Int64}, orient="row")
    found = partial(frame, ["key"], [], largest={"last": "at"})
    assert sorted(found.select("key", "last").rows()) == sorted(frame.group_by("key").agg(pl.col("at").max()).rows())


def test_records_without_a_value_have_no_largest() -> None:
    frame = pl.DataFrame({"key": ["x", "x", "y"], "at": [None, 3, None]}, schema={"key": pl.String, "at": pl.Int64})
    assert sorted(partial(frame, ["key"], [], largest={"last": "at"}).select("key", "last").rows()) == [("x", 3), ("y", None)]


@pytest.mark.parametrize("keys", [1, 300, 20_000, 5_000_000])
def test_no_record_is_taken_to_be_alone_that_is_not(keys: int) -> None:
    chance = random.Random(keys)
    frame = pl.DataFrame({"key": [chance.randrange(keys) for _ in range(20_000)]})
    several = doubtful(frame, ["key"])
    assert several is not None
    repeated = frame.select(pl.len().over("key") > 1).to_series().to_numpy()
    assert not (repeated & ~several).any()
    # Few are in doubt for nothing.
    assert (several & ~repeated).sum() < 2_000


@pytest.mark.parametrize("rows", [10, 5_000])
def test_keys_are_distinct_if_no_two_are_equal(rows: int) -> None:
    frame = pl.DataFrame({"one": [f"k{row % 100}" for row in range(rows)], "other": list(range(rows))})
    assert distinct(frame, ["one", "other"])
    assert not distinct(pl.concat([frame, frame.tail(1)]), ["one", "other"])
    assert not distinct(pl.DataFrame({"zero": [0.0, -0.0]}), ["zero"])
    alone = groups_of(frame, ["one", "other"])
    assert alone is not None
    assert len(alone) == rows
