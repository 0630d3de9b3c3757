"""Patterns: like, rlike, and what regular expressions find and replace."""

from __future__ import annotations

import polars as pl

from headrace.operators.expressions.parts import CompiledTerm, operation
from headrace.operators.expressions.text import letters
from headrace.plan.expressions.patterns import LINE_END
from headrace.plan.expressions.terms import Apply


@operation("like", "ilike")
def like(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    shape, pattern = (str(option) for option in term.options)
    text = letters.lower(parts[0].value) if term.operation == "ilike" else parts[0].value
    if shape == "is":
        return text == pattern
    if shape == "starts":
        return text.str.starts_with(pattern)
    if shape == "ends":
        return text.str.ends_with(pattern)
    return text.str.contains(pattern, literal=shape == "contains")


@operation("rlike")
def rlike(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    pattern, dollar = str(term.options[0]), bool(term.options[1])
    text = parts[0].value
    found = text.str.contains(pattern)
    if not dollar:
        return found
    # Java's dollar also matches before a line end that closes the text.
    return found | text.str.replace(LINE_END, "").str.contains(pattern)


@operation("regexp_extract")
def extract(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    """A group that was not part of the match is empty text, and so is everything where there was none."""
    pattern, group = str(term.options[0]), int(str(term.options[1]))
    text = parts[0].value
    return pl.when(text.is_not_null()).then(text.str.extract(pattern, group).fill_null(""))


@operation("regexp_replace")
def replace(term: Apply, parts: tuple[CompiledTerm, ...]) -> pl.Expr:
    pattern, new = (str(option) for option in term.options)
    return parts[0].value.str.replace_all(pattern, new)
