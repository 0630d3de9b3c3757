"""Typing of choices: case, if, coalesce and similar functions, greatest and least."""

from __future__ import annotations

from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BOOLEAN, DOUBLE
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.terms import Apply, Constant, Term

_ZERO = Constant(kinds.INT, False, "0", 0)


@rule("case")
def case(site: Site, terms: tuple[Term, ...]) -> Term:
    """Alternating conditions and results, with the result of else last."""
    conditions = [_condition(site, term) for term in terms[:-1:2]]
    results = _alike(site, *terms[1:-1:2], terms[-1])
    mixed = [part for pair in zip(conditions, results[:-1], strict=True) for part in pair]
    return site.apply(results[0].kind or kinds.NULL, *mixed, results[-1], nullable=any(result.nullable for result in results))


@rule("if", arguments=3)
def choose(site: Site, terms: tuple[Term, ...]) -> Term:
    condition = site.cast(terms[0], BOOLEAN) if terms[0].kind == kinds.NULL else terms[0]
    return case(Site("case", site.node, site.text, site.where), (condition, *terms[1:]))


def _condition(site: Site, term: Term) -> Term:
    if term.kind not in (None, BOOLEAN):
        raise site.refuse(f"a condition is true or false, and {term.text} is {kinds.named(term.kind or BOOLEAN)}")
    return term


@rule("coalesce", arguments=(1, 100_000))
@rule("nvl", "ifnull", arguments=2)
def coalesce(site: Site, terms: tuple[Term, ...]) -> Term:
    return _coalesced(site, _alike(site, *terms))


def _coalesced(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(terms[0].kind or kinds.NULL, *terms, nullable=all(term.nullable for term in terms), name="coalesce")


@rule("nvl2", arguments=3)
def by_presence(site: Site, terms: tuple[Term, ...]) -> Term:
    present = Apply(BOOLEAN, False, site.written, "is not null", (terms[0],))
    return choose(site, (present, *terms[1:]))


@rule("nullif", arguments=2)
def null_if_equal(site: Site, terms: tuple[Term, ...]) -> Term:
    if any(kinds.nested(term.kind) for term in terms if term.kind is not None):
        raise LeftToSpark("arrays, maps and structs are compared by Spark", terms[0].kind)
    return _null_if(site, *terms)


@rule("nullifzero", arguments=1)
def null_if_zero(site: Site, terms: tuple[Term, ...]) -> Term:
    return _null_if(site, terms[0], _ZERO)


def _null_if(site: Site, term: Term, other: Term) -> Term:
    equal = Apply(BOOLEAN, True, site.written, "=", site.same(term, other))
    nothing = Constant(term.kind, True, "null", None)
    return site.apply(term.kind or kinds.NULL, equal, nothing, term, nullable=True, name="case")


@rule("zeroifnull", arguments=1)
def zero_if_null(site: Site, terms: tuple[Term, ...]) -> Term:
    return _coalesced(site, _alike(site, terms[0], _ZERO))


@rule("nanvl", arguments=2)
def other_than_nan(site: Site, terms: tuple[Term, ...]) -> Term:
    left, right = (term if kinds.floating(term.kind or DOUBLE) else site.wants(term, DOUBLE) for term in terms)
    left, right = site.same(left, right)
    return site.apply(left.kind or DOUBLE, left, right)


@rule("isnan", arguments=1)
def is_nan(site: Site, terms: tuple[Term, ...]) -> Term:
    operand = terms[0] if kinds.floating(terms[0].kind or DOUBLE) else site.wants(terms[0], DOUBLE)
    return site.apply(BOOLEAN, operand, nullable=False)


@rule("raise_error", arguments=1)
def refusal(site: Site, terms: tuple[Term, ...]) -> Term:
    """A fault wherever it is evaluated; it has no value, so it takes the type of the other branches."""
    said = site.literal(terms[0], "a text")
    return site.apply(kinds.NULL, options=(str(said.value),), nullable=True)


@rule("greatest", arguments=(2, 100_000))
@rule("least", arguments=(2, 100_000))
def extreme(site: Site, terms: tuple[Term, ...]) -> Term:
    alike = _alike(site, *terms)
    if kinds.nested(alike[0].kind or kinds.NULL):
        raise LeftToSpark("arrays, maps and structs are compared by Spark", alike[0].kind)
    return site.apply(alike[0].kind or kinds.NULL, *alike, nullable=all(term.nullable for term in alike))


def _alike(site: Site, *terms: Term) -> tuple[Term, ...]:
    """The terms with one type; nested types only where they are already the same."""
    known = {term.kind for term in terms if term.kind != kinds.NULL}
    if len(known) > 1 and any(kinds.nested(kind) for kind in known if kind is not None):
        raise LeftToSpark(f"{site.name} of differing nested types is evaluated by Spark")
    return site.same(*terms)
