"""The quick ways for frames of a few rows give what polars' own ways give."""

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import numpy as np
import polars as pl
import pytest

from headrace.operators import frames
from headrace.operators.frames import row_hashes, rows_at, rows_where, without

ODD = pl.DataFrame(
    {
        "text": ["a", None, "", "a"],
        "number": [1, None, -1, 1],
        "real": [0.5, None, float("nan"), 0.5],
        "yes": [True, None, False, True],
        "bytes": [b"\0", None, b"", b"\0"],
        "price": pl.Series([Decimal("1.50"), None, Decimal("-2.00"), Decimal("1.50")], dtype=pl.Decimal(10, 2)),
        "at": pl.Series([datetime(2026, 1, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]),
        "day": [date(2026, 1, 1), None, date(1, 1, 1), date(2026, 1, 1)],
        "sum": pl.Series([1 << 100, None, -1, 1 << 100], dtype=pl.Int128),
        "list": [["a"], None, [], ["a"]],
        "place": [{"partition": 1, "offset": 2}, None, {"partition": 1, "offset": None}, {"partition": 1, "offset": 2}],
        "nothing": pl.Series([None] * 4, dtype=pl.Null),
    }
)
PIECES = pl.concat([ODD[:1], ODD[1:3], ODD[3:]], rechunk=False)


@pytest.mark.parametrize("frame", [ODD, PIECES], ids=["one piece", "pieces"])
@pytest.mark.parametrize("numbers", [[], [0], [3, 1, 1, 0, 2], [2, 2]])
@pytest.mark.parametrize("few", [0, 10_000], ids=["many rows", "few rows"])
def test_rows_are_taken_by_number_in_the_order_of_the_numbers(frame, numbers, few, monkeypatch):
    monkeypatch.setattr(frames, "_FEW", few)
    taken = rows_at(frame, np.array(numbers, dtype=np.int64))
    assert taken.schema == frame.schema
    assert taken.equals(pl.concat([frame.clear(), *(frame.slice(number, 1) for number in numbers)]))


@pytest.mark.parametrize("chosen", list(product([False, True], repeat=4)))
def test_rows_are_chosen_as_a_filter_chooses_them(chosen):
    assert rows_where(PIECES, np.array(chosen)).equals(ODD.filter(pl.Series(chosen, dtype=pl.Boolean)))


def test_a_row_that_is_not_there_is_refused():
    with pytest.raises(pl.exceptions.OutOfBoundsError):
        rows_at(ODD, np.array([4]))


@pytest.mark.parametrize("columns", [[name] for name in ODD.columns if name != "nothing"] + [["text", "number"], ["number", "list"]])
def test_equal_values_have_equal_hashes_in_any_frame_and_others_do_not(columns):
    hashes = row_hashes(ODD, columns, seed=3)
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 3
    assert hashes.tolist() == row_hashes(PIECES, columns, seed=3).tolist()
    assert hashes[[2, 0]].tolist() == row_hashes(rows_at(ODD, np.array([2, 0])), columns, seed=3).tolist()
    assert hashes.tolist() != row_hashes(ODD, columns, seed=4).tolist()


def test_the_order_of_columns_and_the_sign_of_zero_are_as_in_keys():
    pairs = pl.DataFrame({"a": [1, 2], "b": [2, 1]})
    assert len(set(row_hashes(pairs, ["a", "b"], seed=3).tolist())) == 2
    zeros = pl.DataFrame({"a": [0.0, -0.0, float("nan"), -float("nan")]})
    one, other, nan, minus_nan = row_hashes(zeros, ["a"], seed=3).tolist()
    assert (one, nan) == (other, minus_nan)


def test_a_column_is_left_out():
    assert without(ODD, "at").columns == [name for name in ODD.columns if name != "at"]
