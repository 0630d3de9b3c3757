"""Arithmetic on whole and floating numbers, with Java's results and Spark's faults."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.dtypes import dtype
from headrace.operators.expressions.kernels import quotient, remainder
from headrace.operators.expressions.numbers import decimals
from headrace.operators.expressions.parts import CompiledTerm, Fault, Made, fault, in_turn, operation, special
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT
from headrace.plan.expressions.syntax.nodes import Interval, Kind
from headrace.plan.expressions.terms import Apply

_SIGNS = {"+": pl.Expr.__add__, "-": pl.Expr.__sub__, "*": pl.Expr.__mul__}
_LIMITS = {kinds.TINYINT: 2**7, kinds.SMALLINT: 2**15, kinds.INT: 2**31, kinds.BIGINT: 2**63}
OVERFLOW, BY_ZERO = "overflow", "division by zero"
# These return null where the divisor is zero.
_FORGIVING = {"/": "try_divide", "%": "try_mod"}


@operation("+", "-", "*")
def arithmetic(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    left, right = (part.value for part in parts)
    kind = term.kind or BIGINT
    if kinds.decimal(kind):
        return decimals.arithmetic(term, parts)
    if isinstance(kind, Interval):
        left, right = left.cast(pl.Int64), right.cast(pl.Int64)
    value = _SIGNS[term.operation](left, right)
    if kinds.floating(kind):
        return value
    flag = _overflows(term.operation, parts, (left, right, value), BIGINT if isinstance(kind, Interval) else kind)
    return value.cast(dtype(kind)), [fault(flag, OVERFLOW, term)]


def _overflows(sign: str, parts: tuple[CompiledTerm, ...], values: tuple[pl.Expr, pl.Expr, pl.Expr], kind: Kind) -> pl.Expr:
    left, right, value = values
    if sign == "*":
        wide = pl.Int128 if kind == BIGINT else pl.Int64
        return left.cast(wide) * right.cast(wide) != value.cast(wide)
    constant = parts[1].constant
    if isinstance(constant, int):
        grows = (constant >= 0) == (sign == "+")
        return value < left if grows else value > left
    # The sign of a sum that overflowed differs from the signs of both operands.
    return ((left ^ value) & (right ^ value) < 0) if sign == "+" else ((left ^ right) & (left ^ value) < 0)


@special("/", "%", "pmod", "div")
def division(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    left, right = parts
    kind = left.term.kind or BIGINT
    if kinds.decimal(kind):
        value, own = decimals.division(term, parts)
    elif kinds.floating(kind):
        value, own = _floating_division(term, left.value, right.value), []
    else:
        value, own = _whole_division(term, left.value, right.value, kind)
    by_zero = fault((right.value == 0) & left.value.is_not_null(), BY_ZERO, term, _instead(term, left, right))
    # Spark evaluates the divisor first, and the dividend only where the divisor is not null.
    return CompiledTerm(term, value, in_turn((right, left)), (by_zero, *own))


def _instead(term: Apply, left: CompiledTerm, right: CompiledTerm) -> str:
    """The expression to write to get null where the divisor is zero."""
    if term.operation in _FORGIVING:
        return f"; {_FORGIVING[term.operation]}({left.term.text}, {right.term.text}) gives null instead"
    return f"; nullif({right.term.text}, 0) as the divisor gives null instead"


def _floating_division(term: Apply, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    kind = dtype(term.kind or kinds.DOUBLE)
    if term.operation == "/":
        return quotient(left, right, kind)
    rest = remainder(left, right, kind)
    if term.operation == "%":
        return rest
    return pl.when(rest < 0).then(remainder(rest + right, right, kind)).otherwise(rest)


def _whole_division(term: Apply, left: pl.Expr, right: pl.Expr, kind: Kind) -> tuple[pl.Expr, list[Fault]]:
    whole = left.truncdiv(right)
    if term.operation == "div":
        return whole, [fault((left == -_LIMITS[kind]) & (right == -1), OVERFLOW, term)]
    rest = left - whole * right
    if term.operation == "%":
        return rest, []
    divisor = right if kind == BIGINT else right.cast(pl.Int32)
    lifted = rest.cast(pl.Int64 if kind == BIGINT else pl.Int32) + divisor
    again = lifted - lifted.truncdiv(divisor) * divisor
    return pl.when(rest < 0).then(again.cast(dtype(kind))).otherwise(rest), []


@operation("negative")
def negative(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    return _flipped(term, parts[0], -parts[0].value if not isinstance(term.kind, Interval) else -parts[0].value.cast(pl.Int64))


@operation("abs")
def absolute(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr | Made:
    value = parts[0].value
    if isinstance(term.kind, Interval):
        return _flipped(term, parts[0], value.cast(pl.Int64).abs())
    return _flipped(term, parts[0], value.abs())


def _flipped(term: Apply, part: CompiledTerm, value: pl.Expr) -> pl.Expr | Made:
    kind = term.kind or BIGINT
    if kinds.decimal(kind):
        return decimals.flipped(term, part)
    if kinds.floating(kind):
        return value
    counted = BIGINT if isinstance(kind, Interval) else kind
    lowest = part.value.cast(dtype(counted)) == -_LIMITS[counted]
    return value.cast(dtype(kind)), [fault(lowest, OVERFLOW, term)]


@operation("&", "|", "^")
def bitwise(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    left, right = (part.value for part in parts)
    return left & right if term.operation == "&" else left | right if term.operation == "|" else left ^ right


@operation("~")
def complement(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    return -1 - parts[0].value


@special("try")
def forgiving(term: Apply, parts: tuple[CompiledTerm, ...]) -> CompiledTerm:
    """The value, or null where the operation itself fails; a failure of its arguments still counts."""
    inner = parts[0]
    if not inner.own:
        return CompiledTerm(term, inner.value, inner.inherited)
    failed = pl.any_horizontal([found.flag for found in inner.own])
    return CompiledTerm(term, pl.when(~failed).then(inner.value), inner.inherited)
