"""Case, coalesce, greatest and least: each branch's faults count only where the branch is taken."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.parts import CompiledTerm, Fault, all_of, operation, special
from headrace.plan.expressions import kinds
from headrace.plan.expressions.terms import Apply


@special("case")
def case(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    *branches, otherwise = parts
    conditions, results = branches[::2], branches[1::2]
    value = otherwise.value
    for condition, result in reversed(list(zip(conditions, results, strict=True))):
        value = pl.when(condition.value).then(result.value).otherwise(value)
    return CompiledTerm(term, value.cast(dtype(term.kind or kinds.NULL)), _branch_faults(conditions, results, otherwise))


def _branch_faults(conditions: list[CompiledTerm], results: list[CompiledTerm], otherwise: CompiledTerm) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    taken: pl.Expr | None = None
    for condition, result in zip(conditions, results, strict=True):
        met = condition.value.fill_null(False)
        faults += [_unless(found, taken) for found in condition.faults]
        faults += [_unless(found.where(met), taken) for found in result.faults]
        taken = met if taken is None else taken | met
    return (*faults, *(_unless(found, taken) for found in otherwise.faults))


def _unless(found: Fault, taken: pl.Expr | None) -> Fault:
    return found if taken is None else found.where(~taken)


@special("coalesce")
def coalesce(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    faults: list[Fault] = []
    taken: pl.Expr | None = None
    for part in parts:
        faults += [_unless(found, taken) for found in part.faults]
        taken = part.value.is_not_null() if taken is None else taken | part.value.is_not_null()
    return CompiledTerm(term, pl.coalesce([part.value for part in parts]), tuple(faults))


@special("nanvl")
def other_than_nan(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    left, right = parts
    is_nan = left.value.is_nan()
    value = pl.when(is_nan).then(right.value).otherwise(left.value)
    return CompiledTerm(term, value, (*left.faults, *(found.where(is_nan) for found in right.faults)))


@special("isnan")
def is_nan(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    return CompiledTerm(term, parts[0].value.is_nan().fill_null(False), parts[0].faults)


@special("greatest", "least")
def extreme(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    """Nulls are skipped; NaN is above every other number."""
    values = [part.value for part in parts]
    best = pl.max_horizontal(values) if term.operation == "greatest" else pl.min_horizontal(values)
    if kinds.floating(term.kind or kinds.NULL):
        if term.operation == "greatest":
            best = pl.when(pl.any_horizontal([value.is_nan().fill_null(False) for value in values])).then(float("nan")).otherwise(best)
        # Of a zero and a negative zero, which are equal, Spark keeps the first.
        best = pl.coalesce([pl.when(value == best).then(value) for value in values])
    return CompiledTerm(term, best, all_of(parts))


@special("raise_error")
def refusal(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    """The fault has the words of the user alone."""
    return CompiledTerm(term, pl.lit(None), own=(Fault(pl.lit(True), str(term.options[0])),))


@operation("sign")
def sign(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    value = parts[0].value
    # Zero keeps its sign and NaN stays, as in Java's signum.
    return pl.when(value > 0).then(pl.when(value.is_nan()).then(value).otherwise(1.0)).when(value < 0).then(-1.0).otherwise(value)


@operation("sqrt")
def square_root(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value.sqrt()
