"""Typing of functions on dates and timestamps."""

from __future__ import annotations

import re

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT, DATE, DOUBLE, INT, STRING
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.terms import Apply, Term

_TRUNCATED = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month", "week": "week",
}  # fmt: skip
_TRUNCATED_TIME = {
    **_TRUNCATED, "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip
_PARTS = ("year", "month", "day", "dayofweek", "weekday", "dayofyear", "quarter", "weekofyear")


def _date(site: Site, term: Term) -> Term:
    return site.wants(term, DATE)


def _timestamp(site: Site, term: Term) -> Term:
    if term.kind == kinds.TIMESTAMP_NTZ:
        raise LeftToSpark(f"{site.name} of timestamp_ntz is evaluated by Spark")
    return site.wants(term, TIMESTAMP)


@rule("year", arguments=1)
@rule("month", arguments=1)
@rule("day", "dayofmonth", arguments=1)
@rule("dayofweek", arguments=1)
@rule("weekday", arguments=1)
@rule("dayofyear", arguments=1)
@rule("quarter", arguments=1)
@rule("weekofyear", arguments=1)
@rule("last_day", arguments=1)
@rule("unix_date", arguments=1)
def of_date(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(DATE if site.name == "last_day" else INT, _date(site, terms[0]))


@rule("hour", arguments=1)
@rule("minute", arguments=1)
@rule("second", arguments=1)
def of_time(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(INT, _timestamp(site, terms[0]))


@rule("unix_seconds", arguments=1)
@rule("unix_millis", arguments=1)
@rule("unix_micros", arguments=1)
def since_1970(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(BIGINT, _timestamp(site, terms[0]))


@rule("unix_timestamp", "to_unix_timestamp", arguments=(0, 2))
def unix_timestamp(site: Site, terms: tuple[Term, ...]) -> Term:
    if len(terms) != 1 or terms[0].kind not in (DATE, TIMESTAMP):
        raise LeftToSpark(f"{site.name} is evaluated here for one date or timestamp only", BIGINT)
    return site.apply(BIGINT, site.cast(terms[0], TIMESTAMP))


@rule("timestamp_seconds", arguments=1)
@rule("timestamp_millis", arguments=1)
@rule("timestamp_micros", arguments=1)
def from_number(site: Site, terms: tuple[Term, ...]) -> Term:
    kind = terms[0].kind or BIGINT
    if kinds.floating(kind) or kinds.decimal(kind):
        raise LeftToSpark(f"{site.name} of a fraction is evaluated by Spark", TIMESTAMP)
    if not kinds.integer(kind) and kind != kinds.NULL:
        raise site.refuse(f"{site.name} takes a number, and {terms[0].text} is {kinds.named(kind)}")
    return site.apply(TIMESTAMP, site.cast(terms[0], BIGINT))


@rule("date_from_unix_date", arguments=1)
def from_days(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(DATE, site.wants(terms[0], INT))


@rule("date_add", "dateadd", arguments=2)
@rule("date_sub", arguments=2)
@rule("add_months", arguments=2)
def moved(site: Site, terms: tuple[Term, ...]) -> Term:
    number = terms[1].kind or INT
    if site.name != "add_months" and (number == BIGINT or kinds.floating(number) or kinds.decimal(number)):
        raise site.refuse(f"{site.name} takes a number of days as an int, and {terms[1].text} is {kinds.named(number)}", "cast it to int")
    return site.apply(DATE, _date(site, terms[0]), site.wants(terms[1], INT))


@rule("datediff", "date_diff", arguments=2)
def days_between(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.apply(INT, *(_date(site, term) for term in terms))


@rule("to_date", arguments=(1, 2))
@rule("to_timestamp", arguments=(1, 2))
def converted(site: Site, terms: tuple[Term, ...]) -> Term:
    kind = DATE if site.name == "to_date" else TIMESTAMP
    if len(terms) == 2:
        raise LeftToSpark(f"{site.name} with a format is evaluated by Spark", kind)
    return site.cast(terms[0], kind)


@rule("date_trunc", arguments=2)
def truncated_time(site: Site, terms: tuple[Term, ...]) -> Term:
    return _truncated(site, _TRUNCATED_TIME, terms[0], _timestamp(site, terms[1]))


@rule("trunc", arguments=2)
def truncated_date(site: Site, terms: tuple[Term, ...]) -> Term:
    return _truncated(site, _TRUNCATED, terms[1], _date(site, terms[0]))


def _truncated(site: Site, units: dict[str, str], unit: Term, moment: Term) -> Term:
    word = site.literal(site.wants(unit, STRING), "a unit").value
    name = units.get(word.lower()) if isinstance(word, str) else None
    if name is None:
        # Spark returns null for a unit it does not know.
        return site.constant(None, moment.kind or DATE)
    return site.apply(moment.kind or DATE, moment, options=(name,))


@rule("date_part", "datepart", arguments=2)
def part(site: Site, terms: tuple[Term, ...]) -> Term:
    word = site.literal(terms[0], "a field").value
    name = str(word).lower()
    if name in _PARTS:
        return Apply(INT, terms[1].nullable, site.written, name, (_date(site, terms[1]),))
    if name in ("hour", "minute"):
        return Apply(INT, terms[1].nullable, site.written, name, (_timestamp(site, terms[1]),))
    raise LeftToSpark(f"date_part of {name} is evaluated by Spark", DOUBLE if name == "epoch" else None)


_UNITS = {
    "microsecond": "microsecond", "millisecond": "millisecond", "second": "second", "minute": "minute", "hour": "hour",
    "day": "day", "dayofyear": "day", "week": "week", "month": "month", "quarter": "quarter", "year": "year",
}  # fmt: skip


@rule("timestampadd", arguments=3)
def moved_by_units(site: Site, terms: tuple[Term, ...]) -> Term:
    unit, number, moment = terms
    if number.kind == BIGINT:
        raise LeftToSpark("timestampadd of a bigint is evaluated by Spark", TIMESTAMP)
    return site.apply(TIMESTAMP, _timestamp(site, moment), site.wants(number, INT), options=(_unit(site, unit),))


@rule("timestampdiff", arguments=3)
def units_between(site: Site, terms: tuple[Term, ...]) -> Term:
    unit, start, end = terms
    return site.apply(BIGINT, _timestamp(site, start), _timestamp(site, end), options=(_unit(site, unit),))


def _unit(site: Site, term: Term) -> str:
    word = str(site.literal(term, "a unit").value).lower()
    if word not in _UNITS:
        raise site.refuse(f"{word!r} is not a unit of time", f"one of {', '.join(_UNITS)}")
    return _UNITS[word]


_FORMAT = re.compile(r"(([A-Za-z])\2*)|'((?:[^']|'')*)'|([^A-Za-z'\[\]{}#]+)|(.)", re.DOTALL)
_FORMATTED = frozenset({"yyyy", "MM", "dd", "HH", "mm", "ss", "S", "SS", "SSS", "SSSS", "SSSSS", "SSSSSS"})


@rule("date_format", arguments=2)
def formatted(site: Site, terms: tuple[Term, ...]) -> Term:
    """Evaluated here for numbers of two digits, years of four and fractions of seconds; names and zones are Java's."""
    pattern = site.literal(site.wants(terms[1], STRING), "a format").value
    moment = _timestamp(site, terms[0])
    if not isinstance(pattern, str):
        return site.constant(None, STRING)
    parts: list[str] = []
    for found in _FORMAT.finditer(pattern):
        letters, _, quoted, plain, other = found.groups()
        if other is not None or (letters is not None and letters not in _FORMATTED):
            raise LeftToSpark(f"the format {terms[1].text} is written by Java", STRING)
        # A quote before it marks plain text; two quotes are one, inside and outside of quotes.
        parts.append(letters or "'" + (plain or (quoted or "''").replace("''", "'")))
    return site.apply(STRING, moment, options=parts)
