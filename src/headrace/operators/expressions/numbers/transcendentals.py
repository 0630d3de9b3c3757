"""Exponentials, logarithms and powers, as Java's StrictMath has them."""

from __future__ import annotations

import math

import polars as pl

from headrace.operators.expressions.kernels import over_numbers, quotient
from headrace.operators.expressions.numbers import powers, strict
from headrace.operators.expressions.parts import CompiledTerm, operation
from headrace.plan.expressions.terms import Apply

_DOUBLE = pl.Float64()


@operation("exp")
def exp(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return over_numbers(strict.exp, parts[0].value, dtype=_DOUBLE)


@operation("pow")
def power(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return over_numbers(powers.power, *(part.value for part in parts), dtype=_DOUBLE)


@operation("ln", "log10", "log2")
def logarithm(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """Null where there is none: for zero and below."""
    value = parts[0].value
    function = strict.log10 if term.operation == "log10" else strict.log
    found = over_numbers(function, value, dtype=_DOUBLE)
    if term.operation == "log2":
        found = quotient(found, over_numbers(strict.log, 2.0, dtype=_DOUBLE), _DOUBLE)
    return pl.when(value > 0).then(found)


@operation("log")
def logarithm_to_base(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    base, value = (part.value for part in parts)
    found = quotient(over_numbers(strict.log, value, dtype=_DOUBLE), over_numbers(strict.log, base, dtype=_DOUBLE), _DOUBLE)
    return pl.when((base > 0) & (value > 0)).then(found)


@operation("degrees")
def degrees(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value * (180.0 / math.pi)


@operation("radians")
def radians(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return parts[0].value * (math.pi / 180.0)
