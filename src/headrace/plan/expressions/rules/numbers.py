"""Typing of functions on numbers."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headrace.plan.expressions import kinds
from headrace.plan.expressions.casts import SAME_PLACES
from headrace.plan.expressions.kinds import BIGINT, DOUBLE, INT, STRING
from headrace.plan.expressions.rules.operators import SIGNED_DIGITS
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.syntax.nodes import Interval
from headrace.plan.expressions.terms import Term


@rule("abs", arguments=1)
def absolute(site: Site, terms: tuple[Term, ...]) -> Term:
    operand = site.cast(terms[0], DOUBLE) if terms[0].kind in (STRING, kinds.NULL) else terms[0]
    if operand.kind == Interval.MONTH:
        raise LeftToSpark("month intervals are evaluated by Spark", operand.kind)
    if isinstance(operand.kind, pa.Decimal128Type) and operand.kind.precision > SIGNED_DIGITS:
        raise LeftToSpark(f"Spark rounds to {SIGNED_DIGITS} digits when it changes the sign of a decimal", operand.kind)
    if not isinstance(operand.kind, Interval) and not kinds.number(operand.kind or DOUBLE):
        raise site.refuse(f"abs works on numbers, and {operand.text} is {kinds.named(operand.kind or DOUBLE)}")
    return site.apply(operand.kind or DOUBLE, operand)


@rule("sign", "signum", arguments=1)
@rule("sqrt", arguments=1)
@rule("exp", arguments=1)
@rule("degrees", arguments=1)
@rule("radians", arguments=1)
def of_double(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(DOUBLE, site.wants(terms[0], DOUBLE), nullable=True)


@rule("ln", arguments=1)
@rule("log10", arguments=1)
@rule("log2", arguments=1)
@rule("log", arguments=(1, 2))
def logarithm(site: Site, terms: tuple[Term, ...]) -> Term:
    """`log` has the base first, or none: then it is the natural one."""
    numbers = [site.wants(term, DOUBLE) for term in terms]
    return site.apply(DOUBLE, *numbers, nullable=True, name="ln" if site.name == "log" and len(terms) == 1 else "")


@rule("pow", "power", arguments=2)
def powered(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(DOUBLE, *(site.wants(term, DOUBLE) for term in terms))


@rule("floor", arguments=(1, 2))
@rule("ceil", "ceiling", arguments=(1, 2))
def to_whole(site: Site, terms: tuple[Term, ...]) -> Term:
    if len(terms) == 2:
        raise LeftToSpark(f"{site.name} with two arguments is evaluated by Spark")
    operand = terms[0]
    if isinstance(operand.kind, pa.Decimal128Type):
        return site.apply(kinds.bounded(operand.kind.precision - operand.kind.scale + 1, 0), operand, nullable=True)
    if kinds.integer(operand.kind or DOUBLE):
        return site.cast(operand, BIGINT)
    return site.apply(BIGINT, site.wants(operand, DOUBLE), nullable=True)


@rule("round", arguments=(1, 2))
@rule("bround", arguments=(1, 2))
def rounded(site: Site, terms: tuple[Term, ...]) -> Term:
    operand = terms[0] if kinds.number(terms[0].kind or DOUBLE) else site.wants(terms[0], DOUBLE)
    digits = 0
    if len(terms) == 2:
        places = site.literal(site.wants(terms[1], INT), "a number of digits").value
        if not isinstance(places, int):
            return site.constant(None, operand.kind or DOUBLE)
        digits = places
    if kinds.floating(operand.kind or DOUBLE):
        return _rounded_float(site, operand, digits)
    if isinstance(operand.kind, pa.Decimal128Type):
        return site.apply(_rounded_decimal(operand.kind, digits), operand, options=(digits,), nullable=True)
    return replace(operand, nullable=True) if digits >= 0 else site.apply(operand.kind or INT, operand, options=(digits,), nullable=True)


def _rounded_float(site: Site, operand: Term, digits: int) -> Term:
    if operand.kind != DOUBLE or not 0 <= digits <= SAME_PLACES:
        raise LeftToSpark("this is rounded by its digits in text, which depend on Spark's Java version", operand.kind)
    return site.apply(DOUBLE, operand, options=(digits,), nullable=True)


def _rounded_decimal(kind: pa.Decimal128Type, digits: int) -> pa.Decimal128Type:
    """The integral part may grow by one digit; digits beyond the present ones are not added."""
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return pa.decimal128(min(max(whole, -digits + 1), kinds.MAX_DIGITS), 0)
    scale = min(kind.scale, digits)
    return pa.decimal128(min(whole + scale, kinds.MAX_DIGITS), scale)
