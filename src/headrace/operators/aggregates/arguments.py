"""The calls of an aggregation as its operator sees them: aggregates over columns, and the arguments in those columns."""

from __future__ import annotations

import polars as pl

from headrace.core.errors import PlanError
from headrace.operators.aggregates.call import EvaluatedCall
from headrace.operators.aggregates.functions.user_functions import rehearse
from headrace.operators.aggregates.retractable import irrevocable, revocable
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.aggregates.nodes import Aggregation, TypedCall
from headrace.plan.expressions import Typed


def aggregates_of(node: Aggregation) -> tuple[tuple[EvaluatedCall, ...], tuple[tuple[str, Typed], ...]]:
    """The aggregates of a step, and their arguments and filters under the names of the columns they read."""
    arguments: dict[str, Typed] = {}
    aggregates = []
    for call in node.calls:
        _refuse_irrevocable(node, call)
        names = tuple(f"{call.placeholder}.{place}" for place in range(len(call.arguments)))
        arguments |= dict(zip(names, call.arguments, strict=True))
        condition = f"{call.placeholder}.filter" if call.filter is not None else None
        if condition is not None and call.filter is not None:
            arguments[condition] = call.filter
        aggregates.append(aggregate_of(call, names, condition, node.input.changes))
        if call.own is not None:
            kinds = {name: dtype(typed.type) for name, typed in arguments.items() if typed.type is not None}
            rehearse(aggregates[-1], kinds, node.where)
    return tuple(aggregates), tuple(arguments.items())


def aggregate_of(call: TypedCall, names: tuple[str, ...], condition: str | None, signed: bool) -> EvaluatedCall:
    """One call as its operator sees it, over columns of these names."""
    given = call.arguments[-1].type if call.arguments else None
    taken = pl.Null() if given is None else dtype(given)
    result, text = dtype(call.type), " ".join(call.written.split())
    return EvaluatedCall(call.function, call.placeholder, names, condition, result, signed, taken, text, call.options, call.own)


def _refuse_irrevocable(node: Aggregation, call: TypedCall) -> None:
    if node.input.changes and not revocable(call):
        raise PlanError(
            f"{call.written} over {node.input.name!r}, whose results change",
            why=irrevocable(call),
            hint="use an exact one, such as count(distinct ...), max or collect_list, or remove until= from the earlier step",
            where=node.where,
        )
