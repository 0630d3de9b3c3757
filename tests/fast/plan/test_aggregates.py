"""Aggregates are typed as Spark types them, and refused with the reason where they cannot be computed."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import polars as pl
import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import perfect, tumbling
from headrace.core.columns.schema import type_name
from headrace.core.errors import HeadraceError, PlanError
from headrace.engine.program.compiler import compiled
from headrace.plan.aggregates.user_aggregate import Aggregate

SCHEMA = "k string, at timestamp, i int, d double, m decimal(10,2), s string, b boolean, r array<int>, p map<string, int>"


class Total(Aggregate):
    state: ClassVar = {"total": "double"}
    returns = "double"

    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        return {"total": values[0].sum()}

    def finish(self, state: dict[str, pl.Expr]) -> pl.Expr:
        return state["total"]


class Additive(Total):
    additive = True


class Silent(Total):
    state: ClassVar = {}


def result(text: str) -> str:
    app = Declaration("types")
    stream = app.stream("rows", SCHEMA, time="at", watermark=perfect())
    return type_name(stream.window(tumbling("1m"), by="k").agg(found=text).columns.field("found").type)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("stddev(m)", "double"), ("collect_list(m)", "array<decimal(10,2)>"), ("array_agg(s)", "array<string>"),
        ("count(distinct s, i)", "bigint"), ("approx_percentile(m, 0.5)", "decimal(10,2)"),
        ("approx_percentile(at, array(0.1, 0.9), 100)", "array<timestamp>"), ("max_by(s, i, 3)", "array<string>"), ("every(b)", "boolean"),
        ("approx_top_k(s)", "array<struct<item:string,count:bigint>>"), ("any_value(r)", "array<int>"),
        ("array(min(i), max(i))", "array<int>"), ("heavy_hitters(i, 0.1)", "array<struct<item:int,count:bigint>>"),
        ("cast(map_from_entries(collect_list(struct(s, i))) as map<string, int>)", "map<string,int>"),
    ],
)  # fmt: skip
def test_an_aggregate_has_the_type_that_spark_gives_it(text: str, kind: str) -> None:
    assert result(text) == kind


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("stddev(s)", "stddev_samp of string is not computed", "cast(s as double)"),
        ("bool_and(i)", "int is neither true nor false", "compare"),
        ("approx_percentile(s, 0.5)", "string has no percentiles", "numbers"),
        ("approx_percentile(d, 1.5)", "not a constant from 0 to 1", "0.99"),
        ("approx_percentile(d, d)", "not a constant from 0 to 1", "0.99"),
        ("approx_percentile(d, 0.5, 0)", "the accuracy is 0", "1 to 1,000,000"),
        ("approx_count_distinct(s, 0.0001)", "an error of 0.0001", "count(distinct ...)"),
        ("approx_count_distinct(p)", "maps cannot be compared", "map_keys"),
        ("collect_list(i, 5000000)", "the most values is 5,000,000", "1 to 1,000,000"),
        ("max_by(s, i, 0)", "how many is 0", "1 to 100,000"),
        ("max_by(s, r)", "array<int> has no order", "field"),
        ("approx_top_k(i, 20, 10)", "how many is 20", "1 to 10"),
        ("approx_top_k(r)", "array<int> has no order", "field"),
        ("heavy_hitters(s)", "has 1 arguments", "heavy_hitters takes 2"),
        ("heavy_hitters(s, 0.0001)", "the share is 0.0001", "0.001"),
        ("first(s, i)", "not a constant", "true or false"),
        ("sum(i) ignore nulls", "sum(...) with ignore nulls", "first, last"),
        ("first(s, true) ignore nulls", "first(...) with ignore nulls", "of one value"),
        ("sum(distinct i)", "sum of distinct values", "collect_set"),
        ("mode(s)", "contains no aggregate", "some"),
        ("map_from_entries(collect_list(struct(s, i)))", "only Spark knows its type", "struct(s, i))) as string)"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused_with_what_can(text: str, said: str, hint: str) -> None:
    with pytest.raises(PlanError) as error:
        result(text)
    assert said in str(error.value)
    assert hint in str(error.value.hint)
    assert "test_aggregates.py" in str(error.value.where)


@pytest.mark.parametrize(
    "text",
    ["approx_count_distinct(n)", "approx_percentile(n, 0.5)", "approx_top_k(n)", "heavy_hitters(n, 0.1)", "total(n)"],
)  # fmt: skip
def test_an_aggregate_that_cannot_retract_is_refused_over_results_that_change(text: str) -> None:
    with pytest.raises(PlanError, match="whose results change") as error:
        compiled(over_a_table(text).plan(), shards=1)
    assert text in str(error.value)
    assert error.value.why
    assert "count(distinct ...)" in str(error.value.hint)


@pytest.mark.parametrize(
    "text",
    ["count(n)", "sum(n)", "avg(n)", "count(distinct n)", "bool_and(n > 1)", "collect_list(n)", "collect_set(n)", "additive(n)",
     "max(n)", "first(n)", "max_by(n, n, 2)", "stddev(n)"],
)  # fmt: skip
def test_an_aggregate_that_can_retract_is_accepted_over_results_that_change(text: str) -> None:
    compiled(over_a_table(text).plan(), shards=1)


def over_a_table(text: str) -> Declaration:
    app = Declaration("changing")
    app.aggregate("total", Total())
    app.aggregate("additive", Additive())
    stream = app.stream("rows", SCHEMA, time="at", watermark=perfect())
    app.view("found", stream.group(["k", "s"], ttl=None).agg(n="count(*)").group("k", ttl=None).agg(found=text))
    return app


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("sum", Total(), "'sum'"),
        ("two words", Total(), "'two words'"),
        ("silent", Silent(), "does not declare its state"),
        ("total", Total, "is not an hr.Aggregate"),
    ],
)
def test_an_aggregate_of_ones_own_needs_a_name_of_its_own_and_types(name: str, function: Any, said: str) -> None:
    with pytest.raises(HeadraceError, match=said):
        Declaration("own").aggregate(name, function)


class Forgetful(Total):
    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        return {"sum": values[0].sum()}


class Halves(Total):
    def partial(self, *values: pl.Expr) -> dict[str, pl.Expr]:
        return {"total": values[1].sum()}


class OfTexts(Total):
    state: ClassVar = {"total": "string"}


class Endless(Total):
    def finish(self, state: dict[str, pl.Expr]) -> pl.Expr:
        return state["total"].str.len_chars()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Forgetful(), r"partial of Forgetful fails: ValueError: no part 'total' of its state \(test_aggregates.py:"),
        (Halves(), r"partial of Halves fails: IndexError: tuple index out of range \(test_aggregates.py:"),
        (OfTexts(), "merge of OfTexts fails: InvalidOperationError: .*`str`$"),
        (Endless(), r"finish of Endless fails: SchemaError: .* \(test_aggregates.py:"),
    ],
)
def test_an_aggregate_of_ones_own_that_cannot_be_computed_is_refused_before_a_record_comes(function: Any, said: str) -> None:
    app = Declaration("own")
    app.aggregate("mine", function)
    stream = app.stream("rows", SCHEMA, time="at", watermark=perfect())
    app.view("found", stream.group("k", ttl=None).agg(found="mine(d) filter (where b)"))
    with pytest.raises(PlanError) as error:
        compiled(app.plan(), shards=1)
    assert re.match(rf"mine\(d\) filter \(where b\): {said}", error.value.fact)
    assert error.value.why
    assert error.value.hint
    assert "test_aggregates.py" in str(error.value.where)
