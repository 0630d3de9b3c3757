"""Typing of arithmetic, comparisons and logic."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.syntax.nodes import Interval, Kind
from headrace.plan.expressions.terms import Apply, Constant, Term

_ROUNDED = "a decimal of more than 38 digits is rounded by Spark"
SIGNED_DIGITS = 34
_TRY = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}


@rule("+", arguments=2)
def add(site: Site, terms: tuple[Term, ...]) -> Term:
    return _moment_sum(site, *terms) or _arithmetic(site, "+", *terms)


@rule("-", arguments=2)
def subtract(site: Site, terms: tuple[Term, ...]) -> Term:
    return _moment_difference(site, *terms) or _arithmetic(site, "-", *terms)


@rule("*", arguments=2)
def multiply(site: Site, terms: tuple[Term, ...]) -> Term:
    return _arithmetic(site, "*", *terms)


@rule("/", arguments=2)
def divide(site: Site, terms: tuple[Term, ...]) -> Term:
    left, right = _operands(site, *terms)
    if not kinds.decimal(left.kind or DOUBLE):
        left, right = site.cast(left, DOUBLE), site.cast(right, DOUBLE)
        return site.apply(DOUBLE, left, right, nullable=True, name="/")
    return _decimal(site, "/", left, right)


@rule("%", "mod", arguments=2)
def remainder(site: Site, terms: tuple[Term, ...]) -> Term:
    return _arithmetic(site, "%", *terms)


@rule("pmod", arguments=2)
def positive_remainder(site: Site, terms: tuple[Term, ...]) -> Term:
    return _arithmetic(site, "pmod", *terms)


@rule("div", arguments=2)
def whole_divide(site: Site, terms: tuple[Term, ...]) -> Term:
    left, right = _operands(site, *terms)
    kind = left.kind or BIGINT
    if kinds.floating(kind):
        raise site.refuse(f"div divides whole numbers and decimals, not {kinds.named(kind)}", 'use "/" and cast the result')
    if kinds.decimal(kind):
        return _decimal(site, "div", left, right)
    return site.apply(BIGINT, site.cast(left, BIGINT), site.cast(right, BIGINT), nullable=True, name="div")


@rule(*_TRY, arguments=2)
def forgiving(site: Site, terms: tuple[Term, ...]) -> Term:
    sign = _TRY[site.name]
    if not all(kinds.number(term.kind or DOUBLE) for term in terms):
        raise LeftToSpark(f"{site.name} of other values than numbers is evaluated by Spark")
    if any(isinstance(term, Apply) and term.operation == "try" for term in terms):
        raise LeftToSpark(f"{site.name} of another such call is reordered by Spark's optimizer, which changes where it is null")
    left, right = _operands(site, *terms)
    if sign == "/" and not kinds.decimal(left.kind or DOUBLE):
        left, right = site.cast(left, DOUBLE), site.cast(right, DOUBLE)
    if kinds.decimal(left.kind or DOUBLE):
        found = _decimal(site, sign, left, right)
    else:
        found = site.apply(left.kind or DOUBLE, left, right, name=sign)
    return Apply(found.kind, True, site.written, "try", (found,)) if isinstance(found, Apply) else found


def _moment_sum(site: Site, left: Term, right: Term) -> Term | None:
    if isinstance(left.kind, Interval) or (kinds.integer(left.kind or DOUBLE) and right.kind == DATE):
        if not isinstance(right.kind, Interval):
            left, right = right, left
        elif isinstance(left.kind, Interval):
            return _interval_sum(site, "+", left, right)
    return _shifted(site, "+", left, right)


def _interval_sum(site: Site, sign: str, left: Term, right: Term) -> Term:
    left, right = site.same(left, right)
    if left.kind == Interval.MONTH:
        raise LeftToSpark("the sum of month intervals is evaluated by Spark", Interval.MONTH)
    return site.apply(left.kind or Interval.DAY_TIME, left, right, name=sign)


def _shifted(site: Site, sign: str, moment: Term, length: Term) -> Term | None:
    """A date or timestamp moved by an interval, or a date by days."""
    if moment.kind == DATE and kinds.integer(length.kind or DOUBLE):
        if length.kind == BIGINT:
            raise site.refuse("a date moves by an int, and this is a bigint", "cast it to int")
        return site.apply(DATE, moment, site.cast(length, INT), name="date_add" if sign == "+" else "date_sub")
    if not isinstance(length.kind, Interval):
        return None
    if moment.kind == STRING:
        raise LeftToSpark("text moved by an interval is evaluated by Spark", STRING)
    if moment.kind != DATE and not kinds.instant(moment.kind or DOUBLE):
        raise site.refuse(f"an interval moves dates and timestamps, and {moment.text} is {kinds.named(moment.kind or kinds.NULL)}")
    if length.kind == Interval.MONTH:
        return site.apply(moment.kind or DATE, moment, length, name=f"moment {sign} months")
    if moment.kind == DATE and length.kind == Interval.DAY:
        return site.apply(DATE, moment, length, name=f"date {sign} days")
    moment = site.cast(moment, TIMESTAMP) if moment.kind == DATE else moment
    return site.apply(moment.kind or TIMESTAMP, moment, length, name=f"moment {sign} interval")


def _moment_difference(site: Site, left: Term, right: Term) -> Term | None:
    if isinstance(left.kind, Interval) and isinstance(right.kind, Interval):
        return _interval_sum(site, "-", left, right)
    shifted = _shifted(site, "-", left, right)
    if shifted is not None:
        return shifted
    moments = [term for term in (left, right) if term.kind == DATE or kinds.instant(term.kind or DOUBLE)]
    if not moments:
        return None
    if not all(term in moments or term.kind in (STRING, kinds.NULL) for term in (left, right)):
        return None
    left, right = site.same(left, right)
    return site.apply(Interval.DAY if left.kind == DATE else Interval.DAY_TIME, left, right, name="moment - moment")


def _operands(site: Site, left: Term, right: Term) -> tuple[Term, Term]:
    """Both sides as one number type, or both as decimals of their own precision."""
    for term in (left, right):
        if term.kind is not None and not (kinds.number(term.kind) or term.kind in (STRING, kinds.NULL)):
            raise site.refuse(f"{site.name} works on numbers, and {term.text} is {kinds.named(term.kind)}")
    if left.kind == right.kind == STRING:
        raise site.refuse(f"{site.name} works on numbers, and both sides are strings", "cast one of them")
    one = kinds.common(left.kind or DOUBLE, right.kind or DOUBLE) or DOUBLE
    one = DOUBLE if one in (STRING, kinds.NULL) else one
    if not kinds.decimal(one):
        return site.cast(left, one), site.cast(right, one)
    return _own_decimal(site, left, right), _own_decimal(site, right, left)


def _own_decimal(site: Site, term: Term, other: Term) -> Term:
    if kinds.decimal(term.kind or DOUBLE):
        return term
    if term.kind == kinds.NULL:
        return site.cast(term, other.kind or DOUBLE)
    if isinstance(term, Constant) and isinstance(term.value, int):
        # Spark gives an integer literal next to a decimal only the digits it needs.
        return site.constant(term.value, pa.decimal128(len(str(abs(term.value))), 0))
    return site.cast(term, kinds.as_decimal(term.kind or INT))


def _arithmetic(site: Site, sign: str, left: Term, right: Term) -> Term:
    left, right = _operands(site, left, right)
    kind = left.kind or DOUBLE
    if kinds.decimal(kind):
        return _decimal(site, sign, left, right)
    return site.apply(kind, left, right, nullable=True if sign in ("%", "pmod") else None, name=sign)


def _decimal(site: Site, sign: str, left: Term, right: Term) -> Term:
    digits, scale = _decimal_size(sign, left.kind or DOUBLE, right.kind or DOUBLE)
    kind = BIGINT if sign == "div" else kinds.bounded(digits, scale)
    if digits > kinds.MAX_DIGITS:
        raise LeftToSpark(_ROUNDED, kind)
    return site.apply(kind, left, right, nullable=True, name=sign)


def _decimal_size(sign: str, left: Kind, right: Kind) -> tuple[int, int]:
    one, two = kinds.as_decimal(left), kinds.as_decimal(right)
    whole_one, whole_two = one.precision - one.scale, two.precision - two.scale
    scale = max(one.scale, two.scale)
    if sign in ("+", "-"):
        return max(whole_one, whole_two) + scale + 1, scale
    if sign == "*":
        return one.precision + two.precision + 1, one.scale + two.scale
    if sign == "/":
        scale = max(6, one.scale + two.precision + 1)
        return whole_one + two.scale + scale, scale
    if sign == "div":
        return max(whole_one, whole_two) + scale, scale
    return min(whole_one, whole_two) + scale, scale


@rule("negative", arguments=1)
def negate(site: Site, terms: tuple[Term, ...]) -> Term:
    operand = _number_or_double(site, terms[0])
    return site.apply(operand.kind or DOUBLE, operand)


@rule("positive", arguments=1)
def keep_sign(site: Site, terms: tuple[Term, ...]) -> Term:
    return _number_or_double(site, terms[0])


def _number_or_double(site: Site, term: Term) -> Term:
    if term.kind in (STRING, kinds.NULL):
        return site.cast(term, DOUBLE)
    if term.kind == Interval.MONTH:
        raise LeftToSpark("month intervals are negated by Spark", term.kind)
    if isinstance(term.kind, pa.Decimal128Type) and term.kind.precision > SIGNED_DIGITS and site.name != "positive":
        raise LeftToSpark(f"Spark rounds to {SIGNED_DIGITS} digits when it changes the sign of a decimal", term.kind)
    if not isinstance(term.kind, Interval) and not kinds.number(term.kind or DOUBLE):
        raise site.refuse(f"{site.name} works on numbers, and {term.text} is {kinds.named(term.kind or DOUBLE)}")
    return term


@rule("&", arguments=2)
@rule("|", arguments=2)
@rule("^", arguments=2)
def bitwise(site: Site, terms: tuple[Term, ...]) -> Term:
    left, right = site.same(*terms)
    if not kinds.integer(left.kind or INT):
        raise site.refuse(f"{site.name} works on whole numbers, not {kinds.named(left.kind or INT)}")
    return site.apply(left.kind or INT, left, right)


@rule("~", arguments=1)
def complement(site: Site, terms: tuple[Term, ...]) -> Term:
    if not kinds.integer(terms[0].kind or INT):
        raise site.refuse(f"~ works on whole numbers, not {kinds.named(terms[0].kind or INT)}")
    return site.apply(terms[0].kind or INT, terms[0])


@rule("=", arguments=2)
@rule("<>", arguments=2)
@rule("<", arguments=2)
@rule("<=", arguments=2)
@rule(">", arguments=2)
@rule(">=", arguments=2)
@rule("<=>", "equal_null", arguments=2)
def compare(site: Site, terms: tuple[Term, ...]) -> Term:
    decided = _beyond_bigint(site, *terms)
    if decided is not None:
        return site.constant(decided, BOOLEAN)
    left, right = _comparable(site, *terms)
    return site.apply(BOOLEAN, left, right, nullable=False if site.name in ("<=>", "equal_null") else None)


def _beyond_bigint(site: Site, left: Term, right: Term) -> bool | None:
    """Spark answers an inequality of whole numbers and a decimal constant out of their range at once, even for null."""
    if site.name not in ("<", "<=", ">", ">="):
        return None
    less = site.name in ("<", "<=")
    if isinstance(left, Constant) and kinds.integer(right.kind or DOUBLE):
        left, right, less = right, left, not less
    if not isinstance(right, Constant) or not isinstance(right.value, Decimal) or not kinds.integer(left.kind or DOUBLE):
        return None
    if -(2**63) <= right.value < 2**63:
        return None
    return (right.value > 0) == less


def _comparable(site: Site, *terms: Term) -> tuple[Term, ...]:
    if any(kinds.nested(term.kind) for term in terms if term.kind is not None):
        raise LeftToSpark("arrays, maps and structs are compared by Spark", BOOLEAN)
    return site.same(*terms)


@rule("between", arguments=3)
def between(site: Site, terms: tuple[Term, ...]) -> Term:
    value, low, high = terms
    above = site.apply(BOOLEAN, *_comparable(site, value, low), name=">=")
    below = site.apply(BOOLEAN, *_comparable(site, value, high), name="<=")
    return site.apply(BOOLEAN, above, below, name="and")


@rule("in", arguments=(2, 100_000))
def member(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(BOOLEAN, *_comparable(site, *terms))


@rule("and", arguments=2)
@rule("or", arguments=2)
@rule("not", arguments=1)
def logic(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(BOOLEAN, *(site.wants(term, BOOLEAN) for term in terms))


@rule("is null", "isnull", arguments=1)
@rule("is not null", "isnotnull", arguments=1)
def null_test(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(BOOLEAN, terms[0], nullable=False)
