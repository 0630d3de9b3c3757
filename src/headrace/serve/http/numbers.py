"""Numbers in requests: ASCII digits, and no more of them than a place in a log can have."""

from __future__ import annotations

from headrace.serve.http.problems import Problem

_DIGITS = 18


def digits(text: str) -> bool:
    """Whether a text is a number that this module reads."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def number(text: str, name: str) -> int:
    """The value of a parameter."""
    if not digits(text):
        raise Problem(400, f"{name}={text[:40]!r} is not a number")
    return int(text)
