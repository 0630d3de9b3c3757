"""Aggregations per key or window, checked against the input's columns, typed as Spark types them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from headrace.core.columns.schema import data_type
from headrace.core.errors import PlanError
from headrace.core.nearest import choices
from headrace.plan.aggregates.nodes import TypedCall
from headrace.plan.aggregates.rules import RULES, SAME_AS, Given
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.evolution.canonical import digest
from headrace.plan.expressions import AGGREGATES, Expression, Typed, check
from headrace.plan.expressions.aggregates import AggregateCall, parse_aggregate
from headrace.plan.expressions.expression import with_columns_spelled
from headrace.plan.expressions.syntax.nodes import ColumnName, SyntaxNode, substituted
from headrace.plan.nodes import NamedExpression

# These are the same over distinct values.
_DISTINCT_ALREADY = ("min", "max", "bool_and", "bool_or", "collect_set", "approx_count_distinct")
_DISTINCT_IS = {"count": "count_distinct", "collect_list": "collect_set"}


def aggregation(
    outputs: Mapping[str, str], columns: pa.Schema, where: str | None, own: Mapping[str, Aggregate] | None = None
) -> tuple[tuple[TypedCall, ...], tuple[NamedExpression, ...]]:
    """The calls that named aggregate expressions need, each once, and the expressions over their results.

    `own` are the user's aggregate functions by their names in lower case.
    """
    if not outputs:
        raise PlanError("agg() without an aggregate", hint='name at least one: agg(views="count(*)")', where=where)
    calls: dict[str, TypedCall] = {}
    named: list[tuple[str, Expression]] = []
    for name, text in outputs.items():
        parsed = parse_aggregate(text, where, frozenset(own or ()))
        made = {call.placeholder: _call(call, columns, own or {}, where) for call in parsed.calls}
        for call in made.values():
            calls.setdefault(call.placeholder, call)
        named.append((name, _renamed(parsed.finish, {name: call.placeholder for name, call in made.items()})))
    results = [pa.field(call.placeholder, call.type) for call in calls.values()]
    # In an order of their own: the order in which they are written does not change the state.
    ordered = tuple(calls[placeholder] for placeholder in sorted(calls))
    return ordered, tuple(NamedExpression(name, _finish(expression, results)) for name, expression in named)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    def renamed(node: SyntaxNode) -> SyntaxNode | None:
        return ColumnName(node.span, (names[node.name],)) if isinstance(node, ColumnName) else None

    return replace(expression, root=substituted(expression.root, renamed))


def _finish(expression: Expression, results: Sequence[pa.Field]) -> Typed:
    """The expression over results of aggregates, shown as the user wrote it; Spark needs their names in its text."""
    typed = check(expression, pa.schema([]), results)
    return typed if typed.fused else replace(typed, expression=with_columns_spelled(expression))


def _call(call: AggregateCall, columns: pa.Schema, own: Mapping[str, Aggregate], where: str | None) -> TypedCall:
    function = _distinct(call, where) if call.distinct else SAME_AS.get(call.function, call.function)
    arguments = tuple(check(argument, columns) for argument in call.arguments)
    condition = check(call.filter, columns) if call.filter is not None else None
    if call.function == "count_if":
        if condition is not None:
            raise PlanError(f"{call.name}: count_if has a condition already", hint="join both with and", where=where)
        condition, arguments = arguments[0], ()
    given = Given(function, arguments, call.name, where, own.get(function))
    rule = RULES["own" if given.own is not None else function] if given.own is not None or function in RULES else None
    if rule is None:
        known = sorted({*RULES, *SAME_AS, *own} - {"own", "count_distinct"})
        hint = choices(call.function, known, "aggregates")
        raise PlanError(f"{call.name}: {call.function} is not an aggregate Headrace computes", hint=hint, where=where)
    ruled = rule(given)
    made = TypedCall(ruled.function, "", ruled.arguments, condition, ruled.type, ruled.options, given.own, call.name)
    # By what it computes: the columns of its state identify it, whatever its name and its place.
    identity = digest(made.function, made.arguments, made.filter, made.options, made.type, made.own)
    return replace(made, placeholder=f"_a{identity}")


def _distinct(call: AggregateCall, where: str | None) -> str:
    function = SAME_AS.get(call.function, call.function)
    if function in _DISTINCT_ALREADY:
        return function
    if function not in _DISTINCT_IS:
        raise PlanError(
            f"{call.name}: {function} of distinct values is not an aggregate Headrace computes",
            hint="aggregate without distinct, or fold collect_set(...)",
            where=where,
        )
    return _DISTINCT_IS[function]


def check_own(name: str, function: Aggregate, where: str | None) -> None:
    """Refuse an aggregate of the user's that could not be called, or whose types are not declared."""
    if not isinstance(name, str) or name.lower() in AGGREGATES or not name.isidentifier():
        raise PlanError(
            f"an aggregate of your own cannot be called {name!r}",
            why="Spark has one of that name"
            if isinstance(name, str) and name.isidentifier()
            else "it could not be written in an expression",
            hint="give it another name",
            where=where,
        )
    if not isinstance(function, Aggregate):
        raise PlanError(
            f"aggregate {name!r}: {function!r} is not an hr.Aggregate", hint="give an object of your class, not the class", where=where
        )
    if not function.state or not function.returns:
        raise PlanError(
            f"aggregate {name!r} does not declare its state and its result",
            hint='set state = {"total": "double"} and returns = "double" in its class',
            where=where,
        )
    for kind in (*function.state.values(), function.returns):
        data_type(kind)
