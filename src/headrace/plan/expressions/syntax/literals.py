"""Constants as Spark types them: 1 is an int, 1.5 a decimal(2,1), 1e3 a double."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

import pyarrow as pa

from headrace.plan.expressions.syntax.nodes import Literal, Span
from headrace.plan.expressions.syntax.problems import syntax_error
from headrace.plan.expressions.syntax.reader import TokenReader
from headrace.plan.expressions.syntax.tokens import Token

_INTEGERS = {"Y": (pa.int8(), 8), "S": (pa.int16(), 16), "L": (pa.int64(), 64)}
_NUMBER = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)


def number(token: Token, reader: TokenReader, minus: Token | None = None) -> Literal:
    """A number, with a minus sign before it."""
    match = _NUMBER.fullmatch(token.text)
    digits, suffix = (match[1], (match[2] or "").upper()) if match else (token.text, "")
    digits = digits if minus is None else "-" + digits
    span = Span((minus or token).start, token.end)
    if suffix in _INTEGERS:
        kind, bits = _INTEGERS[suffix]
        if not -(1 << bits - 1) <= int(digits) < 1 << bits - 1:
            raise syntax_error(reader.text, token.start, f"{digits} does not fit in {bits} bits", reader.where)
        return Literal(span, int(digits), kind)
    if suffix == "F":
        return Literal(span, struct.unpack("f", struct.pack("f", float(digits)))[0], pa.float32())
    if suffix == "D" or (not suffix and "e" in digits.lower()):
        if math.isinf(float(digits)):
            raise syntax_error(reader.text, token.start, f"{digits} is beyond a double", reader.where)
        return Literal(span, float(digits), pa.float64())
    if suffix == "BD" or "." in digits:
        return _decimal(digits, span, token, reader)
    value = int(digits)
    for kind, bits in ((pa.int32(), 32), (pa.int64(), 64)):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return Literal(span, value, kind)
    return _decimal(digits, span, token, reader)


def _decimal(digits: str, span: Span, token: Token, reader: TokenReader) -> Literal:
    value = Decimal(digits)
    _, figures, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise syntax_error(reader.text, token.start, f"{digits} is not a number", reader.where)
    if exponent > 0:
        figures, exponent = (*figures, *([0] * exponent)), 0
        value = Decimal((value.as_tuple().sign, figures, 0))
    scale = -exponent
    precision = max(len(str(int("".join(map(str, figures))))) if any(figures) else 1, scale)
    if precision > 38:
        raise syntax_error(reader.text, token.start, "a decimal has at most 38 digits", reader.where)
    return Literal(span, value, pa.decimal128(precision, scale))


def string(token: Token) -> Literal:
    return Literal(Span(token.start, token.end), token.text, pa.string())


def boolean(token: Token) -> Literal:
    return Literal(Span(token.start, token.end), token.text.lower() == "true", pa.bool_())


def nothing(token: Token) -> Literal:
    return Literal(Span(token.start, token.end), None, pa.null())


def hexadecimal(token: Token, reader: TokenReader) -> Literal:
    try:
        value = bytes.fromhex(token.text.zfill(len(token.text) + len(token.text) % 2))
    except ValueError:
        raise syntax_error(reader.text, token.start, f"{token.text!r} is not hexadecimal", reader.where) from None
    return Literal(Span(token.start, token.end), value, pa.binary())
