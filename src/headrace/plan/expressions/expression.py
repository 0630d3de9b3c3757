"""`parse`: a Spark SQL text as an Expression, without a JVM and without knowing any column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headrace.core.columns.schema import quoted
from headrace.core.errors import PlanError
from headrace.plan.expressions.syntax.foreign import foreign
from headrace.plan.expressions.syntax.grammar import Grammar
from headrace.plan.expressions.syntax.nodes import ColumnName, FunctionCall, SyntaxNode


@dataclass(frozen=True)
class Expression:
    """One Spark SQL expression: its text, its meaning, and where the user wrote it.

    Two expressions are equal when they mean the same, whatever the white space in their text.
    """

    text: str = field(compare=False)
    root: SyntaxNode
    where: str | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads, as written, each once, in the order of the text."""
        names: dict[str, str] = {}
        for node in self.root.walk():
            if isinstance(node, ColumnName):
                names.setdefault(node.name.lower(), node.name)
        return tuple(names.values())

    def __str__(self) -> str:
        return self.text


def parse(text: str, where: str | None = None) -> Expression:
    """Read a Spark SQL expression; `where` is the user's file and line, for errors.

    >>> parse("upper(user) || '!'").columns
    ('user',)
    """
    try:
        grammar = Grammar(text, where)
        root = grammar.expression()
        grammar.finish()
    except PlanError:
        other = foreign(text) if isinstance(text, str) else None
        if other is None:
            raise
        root = other
    return of_a_row(Expression(text, root, where))


def with_columns_spelled(expression: Expression) -> Expression:
    """The expression with the name of each column in its text, where a column stands for something else that the user wrote."""
    text, end = "", 0
    columns = {node.span.start: node for node in expression.root.walk() if isinstance(node, ColumnName)}
    for start, node in sorted(columns.items()):
        text += expression.text[end:start] + ".".join(map(quoted, node.parts))
        end = node.span.end
    return replace(expression, text=text + expression.text[end:])


def of_a_row(expression: Expression) -> Expression:
    """The expression, unless a word in it belongs to an aggregate."""
    for node in expression.root.walk():
        if isinstance(node, FunctionCall) and (node.distinct or node.filter is not None or node.ignores_nulls):
            raise PlanError(
                f"{node.name}(...) with distinct, filter or ignore nulls is an aggregate",
                why=f"{expression.text!r} is evaluated for each row on its own",
                hint="aggregates belong in agg(...)",
                where=expression.where,
            )
    return expression
