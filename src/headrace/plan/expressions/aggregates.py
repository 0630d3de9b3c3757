"""Aggregate expressions: `sum(a) / count(*)` becomes the calls it needs and an expression over their results."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.errors import PlanError
from headrace.plan.expressions.aggregate_names import AGGREGATES
from headrace.plan.expressions.expression import Expression, of_a_row, parse
from headrace.plan.expressions.syntax.grammar import Grammar
from headrace.plan.expressions.syntax.nodes import ColumnName, FunctionCall, Star, SyntaxNode, substituted
from headrace.plan.expressions.syntax.problems import unknown_name

# `first(x) ignore nulls` is `first(x, true)`.
_WITH_NULLS = ("first", "last", "any_value", "first_value", "last_value")


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of an expression: `function` over `arguments`, of the rows where `filter` is true.

    `name` is the call as it was written, `placeholder` the column under which the expression expects its result. `count(*)`
    has no arguments.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...]
    filter: Expression | None
    distinct: bool
    placeholder: str


@dataclass(frozen=True)
class SplitAggregate:
    """The `calls` to aggregate, each once, and `finish`, which computes the result from columns with their placeholders as names."""

    finish: Expression
    calls: tuple[AggregateCall, ...]


def parse_aggregate(text: str, where: str | None = None, functions: frozenset[str] = frozenset()) -> SplitAggregate:
    """Read an aggregate expression; `functions` are names of aggregates beyond Spark's own.

    >>> aggregation = parse_aggregate("sum(amount) / count(*)")
    >>> aggregation.finish.columns, [call.name for call in aggregation.calls]
    (('_aggregate_0', '_aggregate_1'), ['sum(amount)', 'count(*)'])
    """
    known = AGGREGATES | {name.lower() for name in functions}
    grammar = Grammar(text, where)
    root = grammar.expression()
    grammar.finish()
    calls: dict[SyntaxNode, AggregateCall] = {}

    def placeholder(node: SyntaxNode) -> SyntaxNode | None:
        """The column of an aggregate, where one is called; none of its arguments is looked into."""
        if not isinstance(node, FunctionCall) or node.name not in known:
            return None
        key = _without_case(node)
        if key not in calls:
            calls[key] = _call(node, text, where, f"_aggregate_{len(calls)}", known)
        return ColumnName(node.span, (calls[key].placeholder,))

    finish = Expression(text, substituted(root, placeholder), where)
    if not calls:
        raise _none_there(text, root, known, where)
    aggregation = SplitAggregate(of_a_row(finish), tuple(calls.values()))
    _refuse_loose_columns(aggregation, where)
    return aggregation


def _call(node: FunctionCall, text: str, where: str | None, placeholder: str, known: frozenset[str]) -> AggregateCall:
    for inner in (part for child in node.children() for part in child.walk()):
        if isinstance(inner, FunctionCall) and inner.name in known:
            raise PlanError(f"{inner.name}(...) is inside {node.name}(...)", why="an aggregate of an aggregate has no rows", where=where)
        if isinstance(inner, Star):
            raise PlanError(f'{node.name}(...) cannot take "*"', hint="only count(*) can", where=where)

    def part(child: SyntaxNode) -> Expression:
        return parse(text[child.span.start : child.span.end], where)

    arguments = tuple(part(argument) for argument in node.arguments)
    if node.ignores_nulls:
        if node.name not in _WITH_NULLS or len(arguments) != 1:
            raise PlanError(f"{node.name}(...) with ignore nulls", hint=f"it belongs to {', '.join(_WITH_NULLS)} of one value", where=where)
        arguments += (parse("true", where),)
    return AggregateCall(
        name=text[node.span.start : node.span.end],
        function=node.name,
        arguments=arguments,
        filter=None if node.filter is None else part(node.filter),
        distinct=node.distinct,
        placeholder=placeholder,
    )


def _none_there(text: str, root: SyntaxNode, known: frozenset[str], where: str | None) -> PlanError:
    called = next((node.name for node in root.walk() if isinstance(node, FunctionCall) and node.name.isidentifier()), None)
    hint = "write for example count(*) or sum(amount)"
    if called is not None:
        hint = unknown_name("aggregate", called, sorted(known))[1]
    return PlanError(f"{text!r} contains no aggregate", why="many rows must become one value", hint=hint, where=where)


def _refuse_loose_columns(aggregation: SplitAggregate, where: str | None) -> None:
    placeholders = {call.placeholder for call in aggregation.calls}
    loose = [name for name in aggregation.finish.columns if name not in placeholders]
    if loose:
        raise PlanError(
            f"column {loose[0]!r} is outside of every aggregate in {aggregation.finish.text!r}",
            why="it has many values, and the result is one",
            hint=f"put it in by=, or write first({loose[0]})",
            where=where,
        )


def _without_case(node: FunctionCall) -> SyntaxNode:
    """The call with its column names in lower case: Spark does not distinguish Amount from amount."""

    def lowered(part: SyntaxNode) -> SyntaxNode | None:
        return ColumnName(part.span, tuple(name.lower() for name in part.parts)) if isinstance(part, ColumnName) else None

    return substituted(node, lowered)
