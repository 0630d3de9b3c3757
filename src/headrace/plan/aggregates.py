"""Aggregations: what is computed per key or window, checked against the input's columns, typed as Spark types it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.schema import type_name
from headrace.plan.aggregation import Call
from headrace.plan.expressions import Typed, check, parse
from headrace.plan.expressions.aggregates import AggregateCall, parse_aggregate
from headrace.plan.expressions.kinds import MAX_DIGITS
from headrace.plan.nodes import Named

_SAME_AS = {"mean": "avg", "first_value": "first", "last_value": "last", "any_value": "first", "count_if": "count"}
_ARGUMENTS = {
    "count": (0, 1),
    "sum": (1, 1),
    "avg": (1, 1),
    "min": (1, 1),
    "max": (1, 1),
    "first": (1, 1),
    "last": (1, 1),
    "min_by": (2, 2),
    "max_by": (2, 2),
}


def aggregation(outputs: Mapping[str, str], columns: pa.Schema, where: str | None) -> tuple[tuple[Call, ...], tuple[Named, ...]]:
    """The calls that named aggregate expressions need, each once, and the expressions over their results."""
    if not outputs:
        raise PlanError("agg() without an aggregate", hint='name at least one: agg(views="count(*)")', where=where)
    calls: dict[tuple[object, ...], Call] = {}
    named: list[tuple[str, str]] = []
    for name, text in outputs.items():
        parsed = parse_aggregate(text, where)
        finish = parsed.finish.text
        for call in reversed(parsed.calls):
            made = _call(call, columns, f"_a{len(calls)}", where)
            made = calls.setdefault((made.function, made.arguments, made.filter), made)
            finish = finish.replace(f"`{call.placeholder}`", f"`{made.placeholder}`")
        named.append((name, finish))
    results = pa.schema([pa.field(call.placeholder, call.type) for call in calls.values()])
    return tuple(calls.values()), tuple(Named(name, check(parse(text, where), results)) for name, text in named)


def _call(call: AggregateCall, columns: pa.Schema, placeholder: str, where: str | None) -> Call:
    function = _SAME_AS.get(call.function, call.function)
    if function not in _ARGUMENTS:
        raise PlanError(
            f"{call.name}: {call.function} is not an aggregate Headrace computes",
            hint=f"known: {', '.join(sorted({*_ARGUMENTS, *_SAME_AS}))}",
            where=where,
        )
    if call.distinct:
        raise PlanError(f"{call.name}: distinct is not an aggregate Headrace computes", hint="aggregate without distinct", where=where)
    arguments = tuple(check(argument, columns) for argument in call.arguments)
    condition = check(call.filter, columns) if call.filter is not None else None
    if call.function == "count_if":
        if condition is not None:
            raise PlanError(f"{call.name}: count_if has a condition already", hint="join both with and", where=where)
        condition, arguments = arguments[0], ()
    least, most = _ARGUMENTS[function]
    if not least <= len(arguments) <= most:
        raise PlanError(
            f"{call.name} has {len(arguments)} arguments",
            hint=f"{function} takes {least if least == most else f'{least} or {most}'}",
            where=where,
        )
    return Call(function, placeholder, arguments, condition, _type(function, arguments, call.name, where))


def _type(function: str, arguments: tuple[Typed, ...], text: str, where: str | None) -> pa.DataType:
    if function == "count":
        return pa.int64()
    unknown = next((argument for argument in arguments if argument.type is None), None)
    kind = arguments[0].type
    if unknown is not None or kind is None:
        raise PlanError(
            f"{text}: only Spark knows the type of its argument",
            why=(unknown or arguments[0]).reason,
            hint="give it a type: cast(... as double)",
            where=where,
        )
    if function in ("sum", "avg"):
        return _numeric(function, kind, text, where)
    ordered = arguments[1].type if function in ("min_by", "max_by") else kind
    assert ordered is not None
    if function not in ("first", "last") and pa.types.is_nested(ordered):
        raise PlanError(f"{text}: {type_name(ordered)} has no order", hint="take a field of it", where=where)
    return kind


def _numeric(function: str, kind: pa.DataType, text: str, where: str | None) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64() if function == "sum" else pa.float64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        more, finer = (10, 0) if function == "sum" else (4, 4)
        return pa.decimal128(min(MAX_DIGITS, kind.precision + more), min(MAX_DIGITS, kind.scale + finer))
    hint = f"{function}(cast({text[len(function) + 1 : -1]} as double))"
    raise PlanError(f"{text}: {function} of {type_name(kind)} is not computed", hint=hint, where=where)
