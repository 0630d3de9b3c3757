"""Comparisons and three-valued logic, in Spark's order of evaluation."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.parts import CompiledTerm, Fault, all_of, operation, special
from headrace.plan.expressions.terms import Apply, Constant

_COMPARED = {
    "=": pl.Expr.__eq__,
    "<>": pl.Expr.__ne__,
    "<": pl.Expr.__lt__,
    "<=": pl.Expr.__le__,
    ">": pl.Expr.__gt__,
    ">=": pl.Expr.__ge__,
}


@operation(*_COMPARED)
def compare(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    left, right = parts
    return _COMPARED[term.operation](left.value, right.value)


@special("<=>")
def same(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    left, right = parts
    return CompiledTerm(term, left.value.eq_missing(right.value), all_of(parts))


@special("and")
def both(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    left, right = parts
    faults = (*left.faults, *(found.where(left.value.fill_null(True)) for found in right.faults))
    return CompiledTerm(term, left.value & right.value, faults)


@special("or")
def either(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    left, right = parts
    faults = (*left.faults, *(found.where(~left.value.fill_null(False)) for found in right.faults))
    return CompiledTerm(term, left.value | right.value, faults)


@operation("not")
def negation(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return ~parts[0].value


@special("is null", "is not null")
def presence(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    value = parts[0].value
    return CompiledTerm(term, value.is_null() if term.operation == "is null" else value.is_not_null(), all_of(parts))


@special("in")
def member(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    """True when found, else null when anything was null, else false; elements after a match are not evaluated."""
    value, *items = parts
    constants = [item for item in items if isinstance(item.term, Constant) and item.term.value is not None]
    others = [item for item in items if item not in constants]
    tests = [*_among(value.value, constants), *(value.value == item.value for item in others)]
    faults = list(value.faults)
    if any(item.faults for item in others):
        faults += _faults_until_found(value.value, items)
    return CompiledTerm(term, tests[0] if len(tests) == 1 else pl.any_horizontal(tests), tuple(faults))


def _among(value: pl.Expr, constants: list[CompiledTerm]) -> list[pl.Expr]:
    if len(constants) < 4:
        return [value == item.value for item in constants]
    listed = pl.concat([pl.select(item.value).to_series().alias("item") for item in constants])
    return [value.is_in(listed.implode())]


def _faults_until_found(value: pl.Expr, items: list[CompiledTerm]) -> list[Fault]:
    faults: list[Fault] = []
    for place, item in enumerate(items):
        before = [(value == earlier.value).fill_null(False) for earlier in items[:place]]
        open_still = ~pl.any_horizontal(before) & value.is_not_null() if before else value.is_not_null()
        faults += [found.where(open_still) for found in item.faults]
    return faults
