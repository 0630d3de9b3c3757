"""Dead letters show what was bad, also where its values are beyond what can be formatted."""

import json
from datetime import UTC, date, datetime

import polars as pl

from headrace.schema.legible import as_json

BEYOND = 9_089_000_000_000_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def moments(*values: int | None) -> pl.Series:
    return pl.Series("at", values, pl.Int64).cast(pl.Datetime("us", "UTC"))


def test_a_moment_beyond_the_calendar_is_written_as_its_number():
    shown = [json.loads(text)["at"] for text in as_json(pl.DataFrame([moments(BEYOND, -BEYOND, None, 0)]))]
    assert shown[:3] == [str(BEYOND), str(-BEYOND), None]
    assert shown[3].startswith("1970-01-01")


def test_moments_inside_of_lists_and_structs_are_written_too():
    frame = pl.DataFrame({"days": [[date(1970, 1, 2)]], "pair": [{"at": NOON, "n": 1}], "none": pl.Series([None], dtype=pl.List(pl.Date))})
    (shown,) = [json.loads(text) for text in as_json(frame)]
    assert shown["days"] == ["1970-01-02"]
    assert (shown["pair"]["at"][:19].replace("T", " "), shown["pair"]["n"], shown["none"]) == ("2026-01-01 12:00:00", 1, None)


def test_a_date_beyond_the_calendar_is_written_as_its_number():
    frame = pl.DataFrame({"day": pl.Series([2_000_000_000, 0], dtype=pl.Int32).cast(pl.Date)})
    assert [json.loads(text)["day"] for text in as_json(frame)] == ["2000000000", "1970-01-01"]


def test_moments_of_any_unit_and_in_arrays_of_one_length_are_written():
    seconds = 1_767_268_800
    units = {unit: pl.Series([seconds * 10**power, None], dtype=pl.Int64).cast(pl.Datetime(unit)) for unit, power in
             (("ms", 3), ("us", 6), ("ns", 9))}  # fmt: skip
    beyond = pl.Series([9_000_000_000_000_000, None], dtype=pl.Int64).cast(pl.Datetime("ms"))
    pair = pl.Series([[BEYOND, 0], None], dtype=pl.Array(pl.Int64, 2)).cast(pl.Array(pl.Datetime("us"), 2))
    first, second = (json.loads(text) for text in as_json(pl.DataFrame({**units, "beyond": beyond, "pair": pair})))
    assert [first[unit] for unit in units] == ["2026-01-01T12:00:00"] * 3
    assert (first["beyond"], first["pair"]) == ("9000000000000000", [str(BEYOND), "1970-01-01T00:00:00"])
    assert set(second.values()) == {None}
