"""Typing of functions on places. They are Headrace's own: Spark SQL has none of them."""

from __future__ import annotations

from importlib.util import find_spec

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions.kinds import DOUBLE, INT, STRING
from headrace.plan.expressions.site import Site, rule
from headrace.plan.expressions.terms import Term

OWN = frozenset({"haversine_km", "speed_kmh", "h3_cell"})
_FINEST = 15


@rule("haversine_km", arguments=4)
def distance(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(DOUBLE, *(site.wants(term, DOUBLE) for term in terms))


@rule("speed_kmh", arguments=6)
def speed(site: Site, terms: tuple[Term, ...]) -> Term:
    """Two places, each with its time behind it."""
    kinds = (DOUBLE, DOUBLE, TIMESTAMP) * 2
    return site.apply(DOUBLE, *(site.wants(term, kind) for term, kind in zip(terms, kinds, strict=True)))


@rule("h3_cell", arguments=3)
def cell(site: Site, terms: tuple[Term, ...]) -> Term:
    if find_spec("h3") is None:
        raise site.refuse("h3_cell needs the package h3", "pip install 'headrace[h3]'")
    resolution = site.wants(terms[2], INT)
    number = getattr(resolution, "value", None)
    if not isinstance(number, int) or not 0 <= number <= _FINEST:
        raise site.refuse("the resolution of h3_cell is a constant from 0 to 15", "h3_cell(latitude, longitude, 9)")
    return site.apply(STRING, *(site.wants(term, DOUBLE) for term in terms[:2]), options=(number,))
