"""Expressions over columns: one select, good rows apart from bad ones, no row lost."""

from pathlib import Path

import polars as pl
import pytest

from headrace.core.errors import PlanError
from headrace.operators import expressions
from headrace.operators.expressions import REASON, compile, evaluate, kernels  # noqa: A004
from headrace.plan.expressions import check, parse

FRAME = pl.DataFrame(
    {"i": [1, 2147483647, None, 0], "j": [0, 1, 2, 4], "s": ["12", "x", None, " 7 "]},
    schema={"i": pl.Int32, "j": pl.Int32, "s": pl.String},
)


def evaluated(*texts: str, frame: pl.DataFrame = FRAME) -> tuple[pl.DataFrame, pl.DataFrame]:
    return evaluate(frame, {f"c{place}": check(parse(text), frame.to_arrow().schema) for place, text in enumerate(texts)})


def test_a_bad_row_goes_aside_with_the_reason_and_its_input():
    good, bad = evaluated("i + 1")
    assert good["c0"].to_list() == [2, None, 1]
    assert bad.to_dicts() == [{"i": 2147483647, "j": 1, "s": "x", REASON: "overflow in i + 1"}]


def test_a_row_is_bad_when_any_of_its_columns_is():
    good, bad = evaluated("i + 1", "i / j", "cast(s as int)")
    assert good.to_dicts() == [{"c0": None, "c1": None, "c2": None}, {"c0": 1, "c1": 0.0, "c2": 7}]
    assert bad[REASON].to_list() == ["division by zero in i / j; try_divide(i, j) gives null instead", "overflow in i + 1"]


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("i / j", 1), ("j <> 0 and i / j > 1", 0), ("j = 0 or i / j > 1", 0), ("case when j = 0 then 0 else i / j end", 0),
        ("if(j = 0, null, i / j)", 0), ("coalesce(j, i / 0)", 0), ("try_divide(i, j)", 0), ("nullif(j, 0) is null or i / j > 0", 0),
        ("i / j > 1 and j <> 0", 1), ("try_cast(s as int)", 0), ("cast(s as int)", 1),
        ("coalesce(i, raise_error('none'))", 1), ("if(j = 0, raise_error('zero'), i)", 1), ("raise_error(s)", None),
        ("s in ('x', cast(i / j as string))", None),
    ],
)  # fmt: skip
def test_a_fault_counts_only_where_spark_would_have_come_to_it(text, bad):
    typed = check(parse(text), FRAME.to_arrow().schema)
    assert typed.fused is (bad is not None)
    if bad is not None:
        assert evaluate(FRAME, {"c": typed})[1].height == bad


def test_the_reason_of_a_raised_error_is_its_text():
    assert evaluated("if(j = 0, raise_error('j is zero'), i)")[1][REASON].to_list() == ["j is zero"]


def test_a_frame_without_faults_has_an_empty_bad_part_of_the_same_columns():
    good, bad = evaluated("upper(s)")
    assert good.height == FRAME.height
    assert bad.height == 0
    assert bad.columns == [*FRAME.columns, REASON]


def test_a_constant_is_given_to_every_row():
    good, bad = evaluated("1 + 1")
    assert (good["c0"].to_list(), bad.height) == ([2, 2, 2, 2], 0)


def test_an_empty_frame_keeps_its_types():
    good, bad = evaluated(
        "i + 1", "1", "cast(s as timestamp)", "m", frame=FRAME.clear().with_columns(m=pl.lit(None, dtype=pl.Decimal(10, 2)))
    )
    assert (good.height, bad.height) == (0, 0)
    assert good.dtypes == [pl.Int32, pl.Int32, pl.Datetime("us", "UTC"), pl.Decimal(10, 2)]


def test_what_spark_evaluates_is_not_compiled():
    typed = check(parse("soundex(s)", where="app.py:5"), FRAME.to_arrow().schema)
    with pytest.raises(PlanError, match="is evaluated by Spark"):
        compile(typed)


def test_no_step_runs_python_for_each_row():
    folder = Path(expressions.__file__).parent
    assert [file.name for file in folder.glob("*.py") if "map_elements" in file.read_text(encoding="utf-8")] == []


AMOUNTS = pl.DataFrame({"amount": [-2.0, 1.0, float("inf"), None]})


def test_an_operation_on_constants_is_computed_once_and_not_for_every_batch(monkeypatch):
    compiled = compile(check(parse("amount < double('inf') and amount > cast(' -1 ' as double)"), AMOUNTS.to_arrow().schema))

    def asked(*_):
        raise AssertionError("a constant text was read again")

    monkeypatch.setattr(kernels, "_run", asked)
    assert AMOUNTS.select(compiled.value).to_series().to_list() == [False, True, False, None]


def test_an_operation_on_constants_that_raises_does_so_only_for_rows_that_need_it():
    compiled = compile(check(parse("case when amount > 1 then cast('x' as int) else cast('7' as int) end"), AMOUNTS.to_arrow().schema))
    reason = "text that is not an int in 'x'"
    assert AMOUNTS.select(compiled.error.alias("error")).to_series().to_list() == [None, None, reason, None]
    assert AMOUNTS.select(compiled.value).to_series().to_list()[:2] == [7, 7]
