"""The common columns of streams that are combined."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace.core.columns.schema import nullable_inside, quoted, type_name
from headrace.core.errors import PlanError
from headrace.plan.building.step_place import StepNames
from headrace.plan.expressions import check, parse
from headrace.plan.nodes import Node
from headrace.plan.steps import Retyped


def common_columns(nodes: Sequence[Node], at: str | None) -> pa.Schema:
    """The columns that all streams have; `null as x` takes the type that x has elsewhere, and a part may be null if it may be in one."""
    first = nodes[0]
    for node in nodes[1:]:
        differences = _differences(first, node)
        if differences:
            raise PlanError(
                f"union of {first.name!r} and {node.name!r}: their columns differ: {'; '.join(differences)}",
                hint=f"give both the columns {', '.join(first.columns.names)}, in this order: select(...), with cast or null as",
                where=at,
            )
    return pa.schema([_common(name, nodes) for name in first.columns.names])


def retyped(node: Node, columns: pa.Schema, names: StepNames, at: str | None) -> Node:
    """A stream whose columns of null alone have the types of a union."""
    if not any(pa.types.is_null(field.type) for field in node.columns):
        return node
    made = []
    for field in node.columns:
        kind = columns.field(field.name).type
        text = f"cast(null as {type_name(kind)})" if pa.types.is_null(field.type) and not pa.types.is_null(kind) else quoted(field.name)
        made.append((field.name, check(parse(text, at), node.columns)))
    return Retyped(names.step_name(f"{node.name}.retyped"), columns, at, node, tuple(made))


def _common(name: str, nodes: Sequence[Node]) -> pa.Field:
    fields = [node.columns.field(name) for node in nodes]
    kinds = [field.type for field in fields if not pa.types.is_null(field.type)] or [fields[0].type]
    kind = kinds[0] if all(other.equals(kinds[0]) for other in kinds) else nullable_inside(kinds[0])
    return pa.field(name, kind, any(field.nullable for field in fields))


def _differences(one: Node, other: Node) -> list[str]:
    mine, theirs = one.columns, other.columns
    found = [f"{name!r} is only in {one.name!r}" for name in mine.names if name not in theirs.names]
    found += [f"{name!r} is only in {other.name!r}" for name in theirs.names if name not in mine.names]
    for name in [name for name in mine.names if name in theirs.names]:
        kinds = [mine.field(name).type, theirs.field(name).type]
        if not nullable_inside(kinds[0]).equals(nullable_inside(kinds[1])) and not any(pa.types.is_null(kind) for kind in kinds):
            found.append(f"{name!r} is {type_name(kinds[0])} in {one.name!r} and {type_name(kinds[1])} in {other.name!r}")
    if not found and mine.names != theirs.names:
        found.append(f"their order is {', '.join(mine.names)} and {', '.join(theirs.names)}")
    return found
