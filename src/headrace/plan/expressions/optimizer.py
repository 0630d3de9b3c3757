"""Rewrites of Spark's optimizer, where they change a result or the rows that raise.

For example, neighboring constants are added before columns are, and a part that cannot matter is never evaluated. None of this makes an
expression faster here; it keeps the faults, and a few texts, the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import DATE
from headrace.plan.expressions.terms import Apply, Constant, Term

# These evaluate their arguments before they return null.
_NULL_TOLERANT = frozenset({
    "and", "or", "case", "coalesce", "nanvl", "isnan", "greatest", "least", "concat", "concat_ws", "<=>", "is null", "is not null",
    "in", "struct", "array", "locate", "array_contains", "try", "cast",
})  # fmt: skip
_COMPARED = frozenset({"=", "<=>", "<", "<=", ">", ">="})
_LIMITS = {kinds.TINYINT: 2**7, kinds.SMALLINT: 2**15, kinds.INT: 2**31, kinds.BIGINT: 2**63}


class NeverFolds(Exception):
    """Constants that Spark fails to fold, whatever the rows are."""


def optimized(term: Term) -> Term:
    """The term as Spark evaluates it."""
    if not isinstance(term, Apply):
        return term
    found: Term = replace(term, arguments=tuple(optimized(argument) for argument in term.arguments))
    for step in _STEPS:
        if isinstance(found, Apply):
            found = step(found)
    return found


def _null(term: Apply) -> Constant:
    return Constant(term.kind, True, term.text, None)


def _missing(term: Term) -> bool:
    return isinstance(term, Constant) and term.value is None


def _propagate_null(term: Apply) -> Term:
    """With a null constant, nothing else is evaluated."""
    if term.operation not in _NULL_TOLERANT and any(_missing(argument) for argument in term.arguments):
        return _null(term)
    if term.operation == "in" and (_missing(term.arguments[0]) or all(_missing(item) for item in term.arguments[1:])):
        return _null(term)
    return term


def _never_null(term: Apply) -> Term:
    """A null check of what is never null does not evaluate it."""
    if term.operation == "<=>" and any(_missing(argument) for argument in term.arguments):
        others = [argument for argument in term.arguments if not _missing(argument)]
        term = replace(term, operation="is null", arguments=tuple(others[:1] or term.arguments[:1]))
    if term.operation in ("is null", "is not null") and not term.arguments[0].nullable:
        return Constant(term.kind, False, term.text, term.operation == "is not null")
    return term


def _decide(term: Apply) -> Term:
    """`x or true` is true and `x and false` is false, without an evaluation of x."""
    if term.operation in ("and", "or"):
        decisive = term.operation == "or"
        if any(isinstance(argument, Constant) and argument.value is decisive for argument in term.arguments):
            return Constant(term.kind, False, term.text, decisive)
    return term


def _reorder(term: Apply) -> Term:
    """In a chain of whole numbers, the constants are combined and come last."""
    if term.operation not in ("+", "*") or not kinds.integer(term.kind or kinds.NULL):
        return term
    links = _links(term, term)
    constants = [link for link in links if isinstance(link, Constant)]
    others = [link for link in links if link not in constants]
    if not constants or not others:
        return term
    value = reduce(lambda one, two: _folded(term, one, two), (int(str(link.value)) for link in constants))
    sum_of_others = reduce(lambda one, two: _joined(term, one, two), others)
    if value == (0 if term.operation == "+" else 1):
        return sum_of_others
    return _joined(term, sum_of_others, Constant(term.kind, False, str(value), value))


def _links(chain: Apply, term: Term) -> list[Term]:
    if isinstance(term, Apply) and (term.operation, term.kind) == (chain.operation, chain.kind):
        return [link for argument in term.arguments for link in _links(chain, argument)]
    return [term]


def _folded(term: Apply, one: int, two: int) -> int:
    value = one + two if term.operation == "+" else one * two
    limit = _LIMITS[term.kind]
    if not -limit <= value < limit:
        raise NeverFolds(f"the constants of {term.text} overflow, and Spark refuses them whatever the rows are")
    return value


def _joined(term: Apply, one: Term, two: Term) -> Term:
    return Apply(term.kind, one.nullable or two.nullable, term.text, term.operation, (one, two))


def _one_case(term: Apply) -> Term:
    """Of nested upper and lower case only the outer one is applied."""
    inner = term.arguments[0] if term.arguments else term
    if term.operation in ("upper", "lower") and isinstance(inner, Apply) and inner.operation in ("upper", "lower"):
        return replace(term, arguments=inner.arguments)
    return term


def _taken_apart(term: Apply) -> Term:
    """A part that is read from a value that was just constructed needs no other part."""
    container = term.arguments[0] if term.arguments else term
    if not isinstance(container, Apply):
        return term
    if term.operation == "field" and container.operation == "struct":
        return container.arguments[container.options.index(term.options[0])]
    index = term.arguments[1] if len(term.arguments) > 1 else None
    if term.operation == "[]" and container.operation == "array" and isinstance(index, Constant) and isinstance(index.value, int):
        return container.arguments[index.value] if 0 <= index.value < len(container.arguments) else term
    return term


def _same_results(term: Apply) -> Term:
    """A choice between equal results evaluates no condition."""
    if term.operation == "case" and all(result == term.arguments[-1] for result in term.arguments[1:-1:2]):
        return term.arguments[-1]
    return term


def _date_against_constant(term: Apply) -> Term:
    """A date compared with a constant timestamp is never cast, so it cannot overflow."""
    if term.operation not in _COMPARED or not any(isinstance(argument, Constant) for argument in term.arguments):
        return term
    return replace(term, arguments=tuple(_saturating(argument) for argument in term.arguments))


def _saturating(term: Term) -> Term:
    if isinstance(term, Apply) and term.operation == "cast" and term.kind == TIMESTAMP and term.arguments[0].kind == DATE:
        return replace(term, operation="saturated timestamp")
    return term


_STEPS: tuple[Callable[[Apply], Term], ...] = (
    _propagate_null, _never_null, _decide, _reorder, _one_case, _taken_apart, _same_results, _date_against_constant,
)  # fmt: skip
