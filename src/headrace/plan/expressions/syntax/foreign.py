"""Syntax left to Spark: text that our grammar does not read but sqlglot recognizes as Spark SQL."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError

from headrace.plan.expressions.syntax.nodes import Foreign, Span

# sqlglot accepts too much, so it is used only where the text shows syntax that our grammar leaves out.
_SIGNS = {
    r"->": "a lambda", r"=>": "a named argument", r"\bover\b": "a window function", r"\bselect\b": "a subquery",
    r"\bwithin\s+group\b": "an ordered aggregate", r"\bcollate\b": "a collation", r"\boverlay\b": "overlay",
    r"\bexists\b": "exists", r"\bextract\b": "extract", r"\w:\w": "a path into a variant",
}  # fmt: skip


def foreign(text: str) -> Foreign | None:
    """The text as one node that Spark evaluates; None when it is not Spark SQL either."""
    what = next((name for sign, name in _SIGNS.items() if re.search(sign, text, re.IGNORECASE)), None)
    if what is None:
        return None
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    if not isinstance(tree, sql.Condition) or isinstance(tree, sql.Alias):
        return None
    if tree.find(sql.Query):
        return Foreign(Span(0, len(text)), what, ())
    return Foreign(Span(0, len(text)), what, _columns(tree), tree.find(sql.Window, sql.WithinGroup) is not None)


def _columns(tree: sql.Condition) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(tuple(part.name for part in column.parts) for column in tree.find_all(sql.Column)))
