"""Refusals of columns of a step and of its key: they would be read as something else, or could not be stored."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.errors import PlanError
from headrace.plan.nodes import Node
from headrace.plan.reserved import reserved


def refuse_names_of_the_engine(node: Node) -> None:
    name = next(filter(reserved, node.columns.names), None)
    if name is not None:
        raise PlanError(
            f"{node.name!r} has a column {name!r}",
            why="the engine adds a column of its own with that name to each record",
            hint=f"call it {name.strip('_ ')!r}: other names may begin with an underscore, too",
            where=node.where,
        )


def refuse_names_that_mean_several(node: Node) -> None:
    """Polars reads these as patterns over the names of columns."""
    name = next((name for name in node.columns.names if name in ("", "*") or (name.startswith("^") and name.endswith("$"))), None)
    if name is not None:
        raise PlanError(
            f"{node.name!r} has a column {name!r}",
            why="it could not be distinguished from a pattern that means several columns",
            hint="give it another name: select(...) with as, or schema= of the stream",
            where=node.where,
        )


def refuse_columns_of_no_type(node: Node) -> None:
    untyped = next((field for field in node.columns if pa.types.is_null(field.type)), None)
    if untyped is not None:
        raise PlanError(
            f"column {untyped.name!r} of {node.name!r} has no type",
            why="nothing but null can be in it, and no topic or table could hold it",
            hint="say which it has: cast(null as string)",
            where=node.where,
        )


def refuse_keys_that_are_not_plain(node: Node) -> None:
    names = node.keyed_by
    nested = next((name for name in names if pa.types.is_nested(node.inputs[0].columns.field(name).type)), None)
    if nested is not None:
        raise PlanError(
            f"key {nested!r} of {node.name!r} is {type_name(node.inputs[0].columns.field(nested).type)}",
            why="records are distributed and identified by plain values",
            hint="take a part of it, or its text, into a column first: with_columns(...)",
            where=node.where,
        )
