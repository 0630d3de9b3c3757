"""Calls with a syntax of their own: cast, case, extract, position, substring, trim, and typed literals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions.moments import read_date, read_timestamp
from headrace.plan.expressions.syntax import intervals
from headrace.plan.expressions.syntax.nodes import Case, Cast, FunctionCall, Literal, Scalar, SyntaxNode
from headrace.plan.expressions.syntax.problems import syntax_error

if TYPE_CHECKING:
    from headrace.plan.expressions.syntax.grammar import Grammar

TYPED_LITERALS = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_EXTRACTED = {
    "year": "year", "y": "year", "years": "year", "yr": "year", "yrs": "year",
    "quarter": "quarter", "qtr": "quarter", "month": "month", "mon": "month", "mons": "month", "months": "month",
    "week": "weekofyear", "w": "weekofyear", "weeks": "weekofyear", "day": "day", "d": "day", "days": "day",
    "dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear",
    "hour": "hour", "h": "hour", "hours": "hour", "hr": "hour", "hrs": "hour",
    "minute": "minute", "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
}  # fmt: skip


def typed_literal(grammar: Grammar) -> Literal | Cast:
    """`date '2024-02-29'`, `timestamp '2024-02-29T12:00:00Z'`."""
    start = grammar.token.start
    word = grammar.take().text.lower()
    text = grammar.take().text
    value: Scalar = read_date(text) if word == "date" else read_timestamp(text)
    if value is None:
        raise syntax_error(grammar.text, start, f"{text!r} is not a {word}", grammar.where)
    kind = pa.date32() if word == "date" else pa.timestamp("us") if word == "timestamp_ntz" else TIMESTAMP
    if isinstance(value, str):
        return Cast(grammar.since(start), Literal(grammar.since(start), value, pa.string()), kind)
    return Literal(grammar.since(start), value, kind)


def interval(grammar: Grammar) -> Literal | None:
    """`interval 5 minutes`; None when the word is the name of a column."""
    start, place = grammar.token.start, grammar.place
    grammar.take()
    if grammar.token.kind not in ("number", "string") and not grammar.token.says("+", "-"):
        grammar.back_to(place)
        return None
    signed = grammar.token.says("+", "-")
    length = _length(grammar)
    if length is None and signed:
        grammar.back_to(place)
        return None
    if length is None:
        raise syntax_error(grammar.text, start, "this is not an interval", grammar.where)
    return Literal(grammar.since(start), length[0], length[1])


def _length(grammar: Grammar) -> intervals.Length | None:
    parts: list[tuple[str, str]] = []
    while grammar.token.kind in ("number", "string") or (grammar.token.says("+", "-") and not parts):
        sign = grammar.take().text if grammar.token.says("+", "-") else ""
        number = grammar.take()
        unit = intervals.unit(grammar.token.text) if grammar.token.kind == "word" else None
        if unit is None:
            return intervals.spelled(number.text) if number.kind == "string" and not parts and not sign else None
        grammar.take()
        if grammar.accept("to"):
            end = intervals.unit(grammar.name())
            return intervals.ranged(sign + number.text, unit, end or "")
        parts.append((_signed(sign, number.text), unit))
    return intervals.combined(parts)


def _signed(sign: str, number: str) -> str:
    bare = number.strip()
    if sign == "-":
        return bare[1:] if bare.startswith("-") else "-" + bare.removeprefix("+")
    return bare


def _cast(grammar: Grammar) -> SyntaxNode:
    start = grammar.token.start
    safe = grammar.take().text.lower() == "try_cast"
    grammar.expect("(")
    operand = grammar.expression()
    grammar.expect("as")
    kind = grammar.data_type()
    grammar.expect(")")
    return Cast(grammar.since(start), operand, kind, safe)


def _case(grammar: Grammar) -> SyntaxNode:
    start = grammar.take().start
    operand = None if grammar.token.says("when") else grammar.expression()
    branches: list[tuple[SyntaxNode, SyntaxNode]] = []
    while grammar.accept("when"):
        begin = grammar.token.start
        condition = grammar.expression()
        if operand is not None:
            condition = FunctionCall(grammar.since(begin), "=", (operand, condition))
        grammar.expect("then")
        branches.append((condition, grammar.expression()))
    if not branches:
        raise grammar.wrong("expected 'when'")
    otherwise = grammar.expression() if grammar.accept("else") else None
    grammar.expect("end")
    return Case(grammar.since(start), tuple(branches), otherwise)


def _extract(grammar: Grammar) -> SyntaxNode:
    start = grammar.take().start
    grammar.expect("(")
    field = grammar.name().lower()
    if field not in _EXTRACTED:
        raise grammar.wrong(f"{field!r} cannot be read here")
    grammar.expect("from")
    operand = grammar.expression()
    grammar.expect(")")
    return FunctionCall(grammar.since(start), _EXTRACTED[field], (operand,))


def _position(grammar: Grammar) -> SyntaxNode:
    start = grammar.take().start
    grammar.expect("(")
    arguments = [grammar.value()]
    if not grammar.accept("in"):
        return _rest(grammar, start, "position", arguments)
    arguments.append(grammar.value())
    grammar.expect(")")
    return FunctionCall(grammar.since(start), "position", tuple(arguments))


def _substring(grammar: Grammar) -> SyntaxNode:
    start = grammar.token.start
    name = grammar.take().text.lower()
    grammar.expect("(")
    arguments = [grammar.value()]
    if not grammar.accept("from"):
        return _rest(grammar, start, name, arguments)
    arguments.append(grammar.value())
    if grammar.accept("for"):
        arguments.append(grammar.value())
    grammar.expect(")")
    return FunctionCall(grammar.since(start), name, tuple(arguments))


def _rest(grammar: Grammar, start: int, name: str, arguments: list[SyntaxNode]) -> SyntaxNode:
    while grammar.accept(","):
        arguments.append(grammar.expression())
    grammar.expect(")")
    return FunctionCall(grammar.since(start), name, tuple(arguments))


def _trim(grammar: Grammar) -> SyntaxNode:
    start = grammar.take().start
    grammar.expect("(")
    side = grammar.take().text.lower() if grammar.token.says("both", "leading", "trailing") else None
    name = {"leading": "ltrim", "trailing": "rtrim"}.get(side or "both", "trim")
    if side is not None and grammar.accept("from"):
        characters = None
    else:
        first = grammar.expression()
        if side is None and not grammar.token.says("from"):
            return _rest(grammar, start, "trim", [first])
        grammar.expect("from")
        characters = first
    operand = grammar.expression()
    grammar.expect(")")
    return FunctionCall(grammar.since(start), name, (operand,) if characters is None else (characters, operand))


FORMS: dict[str, Callable[[Grammar], SyntaxNode]] = {
    "case": _case, "cast": _cast, "try_cast": _cast, "extract": _extract, "position": _position,
    "substring": _substring, "substr": _substring, "trim": _trim,
}  # fmt: skip
