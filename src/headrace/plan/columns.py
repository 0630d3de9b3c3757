"""What a column of a step may not be, and a column of its key: it would be taken for something else, or held by nothing."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.errors import PlanError
from headrace.core.schema import type_name
from headrace.plan.aggregation import Aggregation
from headrace.plan.dedup import Dedup
from headrace.plan.nodes import Node
from headrace.plan.previous import WithPrevious
from headrace.plan.process import Process
from headrace.plan.reserved import reserved
from headrace.plan.steps import KeyBy
from headrace.plan.tables import ToTable
from headrace.plan.top import Top


def refuse_names_of_the_engine(node: Node) -> None:
    name = next(filter(reserved, node.columns.names), None)
    if name is not None:
        raise PlanError(
            f"{node.name!r} has a column {name!r}",
            why="the engine keeps something of its own under that name beside each record",
            hint=f"call it {name.strip('_ ')!r}: other names may begin with an underscore, too",
            where=node.where,
        )


def refuse_names_that_mean_several(node: Node) -> None:
    """Polars takes these for patterns over the names of columns."""
    name = next((name for name in node.columns.names if name in ("", "*") or (name.startswith("^") and name.endswith("$"))), None)
    if name is not None:
        raise PlanError(
            f"{node.name!r} has a column {name!r}",
            why="it could not be told from a pattern that means several columns",
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
    names = _key(node)
    nested = next((name for name in names if pa.types.is_nested(node.inputs[0].columns.field(name).type)), None)
    if nested is not None:
        raise PlanError(
            f"key {nested!r} of {node.name!r} is {type_name(node.inputs[0].columns.field(nested).type)}",
            why="records are spread and told apart by plain values",
            hint="take a part of it, or its text, into a column first: with_columns(...)",
            where=node.where,
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"the key of {node.name!r} has {twice!r} twice", hint="name it once", where=node.where)


def _key(node: Node) -> tuple[str, ...]:
    """The columns by which a step tells records apart."""
    if isinstance(node, Aggregation | Dedup | WithPrevious | Process):
        return node.by
    if isinstance(node, ToTable | KeyBy):
        return node.key
    return node.per if isinstance(node, Top) else ()
