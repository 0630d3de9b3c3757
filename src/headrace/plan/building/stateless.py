"""Steps that judge each record by itself, built from Spark SQL texts and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import quoted, type_name
from headrace.plan.building.functions import refuse_arity
from headrace.plan.building.step_place import StepPlace, refuse_twice, typed_field
from headrace.plan.building.unions import common_columns, retyped
from headrace.plan.expressions import Typed, expand, parse_select
from headrace.plan.nodes import Node, column
from headrace.plan.steps import PLACE, Explode, KeyBy, Select, Transform, Union, Where, WithPlace


def where(after: StepPlace, condition: str) -> Where:
    typed = after.typed(condition)
    if typed.type is not None and not pa.types.is_boolean(typed.type) and not pa.types.is_null(typed.type):
        raise after.refused(f"where({condition!r}) is {type_name(typed.type)}, not a condition", hint="compare it with something")
    return Where(after.called("where"), after.columns, after.at, after.node, typed)


def select(after: StepPlace, texts: Sequence[str]) -> Select:
    """Select lists, in one text or several."""
    if not texts:
        raise after.refused(f"select() of {after.node.name!r} without a column", hint='name at least one: select("url")')
    named = expand([pair for text in texts for pair in parse_select(text, after.at)], after.columns)
    return _project(after, [(name, after.typed(expression)) for name, expression in named], "select")


def with_columns(after: StepPlace, texts: Mapping[str, str]) -> Select:
    """All columns, and new ones by name; a column of the same name is replaced."""
    made = {name: after.typed(text) for name, text in texts.items()}
    # Spark does not tell upper from lower case: Amount takes the place of amount.
    placed = {name.lower(): name for name in made}
    kept = {placed.get(name.lower(), name): after.typed(quoted(name)) for name in after.columns.names}
    return _project(after, [*(kept | made).items()], "with_columns")


def flat_map(after: StepPlace, array: str, into: Any) -> Explode:
    typed = after.typed(array)
    if typed.type is None:
        raise after.refused(f"{array!r}: only Spark knows its type", why=typed.reason, hint=f"give it one: cast({array} as array<string>)")
    if not isinstance(into, str):
        raise after.refused(f"flat_map({array!r}, into={into!r}) has no name for the elements", hint='into="word"')
    if not pa.types.is_list(typed.type):
        raise after.refused(f"{array} is not an array", hint="give an expression that makes one, such as split(...)")
    element = pa.field(into, typed.type.value_type)
    columns = pa.schema([*(field for field in after.columns if field.name != into), element])
    return Explode(after.called("flat_map"), columns, after.at, after.node, typed, into)


def with_place(after: StepPlace, into: Any) -> WithPlace:
    if after.node.declared_stream is None or after.node.side_of is not None:
        raise after.refused(
            f"with_place() of {after.node.name!r} has no place to add",
            why="only a record of a declared stream has a partition and an offset of its own",
            hint="call it on the stream that app.stream(...) returns, before other steps; its column goes along with them",
        )
    if not isinstance(into, str) or not into:
        raise after.refused(f"with_place({into!r}) is not the name of a column", hint='with_place("place")')
    columns = pa.schema([*after.columns, pa.field(into, PLACE)])
    refuse_twice(columns, after.at)
    return WithPlace(after.called("with_place"), columns, after.at, after.node, into)


def transform(after: StepPlace, function: Callable[[Any], Any], columns: pa.Schema | None) -> Transform:
    if not callable(function):
        raise after.refused(f"transform({function!r}) is not a function", hint="give one from a DataFrame to a DataFrame")
    refuse_arity(function, ("frame",), f"transform(...) of {after.node.name!r}", after.at)
    return Transform(after.called("transform"), after.columns if columns is None else columns, after.at, after.node, function)


def union(after: StepPlace, others: Sequence[Node]) -> Union:
    nodes = (after.node, *others)
    columns = common_columns(nodes, after.at)
    alike = tuple(retyped(node, columns, after.names, after.at) for node in nodes)
    return Union(after.called("union"), columns, after.at, alike)


def key_by(after: StepPlace, names: tuple[str, ...]) -> KeyBy:
    if not names:
        raise after.refused(f"key_by() of {after.node.name!r} without a column", hint='name at least one: key_by("url")')
    for name in names:
        column(after.node, name, "key_by")
    return KeyBy(after.called("key_by"), after.columns, after.at, after.node, names)


def _project(after: StepPlace, expressions: Sequence[tuple[str, Typed]], kind: str) -> Select:
    columns = pa.schema([typed_field(name, typed, typed.expression.text, after.at) for name, typed in expressions])
    return Select(after.called(kind), columns, after.at, after.node, tuple(expressions))
