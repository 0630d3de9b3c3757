"""The best rows by a column, built as one step over facts, or as two: the best of each shard, then of all."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.core.columns.names import Names, listed
from headrace.core.columns.schema import type_name
from headrace.core.counts import counts
from headrace.plan.building.step_place import StepPlace, refuse_twice
from headrace.plan.nodes import column
from headrace.plan.tables.top import Top, TopOfFacts, window_of


@dataclass(frozen=True)
class TopArguments:
    """The arguments of `top`: the number of rows, the column of their order, their groups, and the column of their place."""

    count: int
    by: str
    per: Names = ()
    rank: str = ""


def top(after: StepPlace, asked: TopArguments, name: str | None = None) -> Top | TopOfFacts:
    node, count, rank = after.node, asked.count, asked.rank
    score = _score(after, asked)
    window = window_of(node)
    names = [column for part in listed(asked.per) for column in (window if part == "window" and window else (part,))]
    groups = after.columns_of(names, "top per")
    closes = bool(window) and set(window) <= set(groups)
    called = after.called("top", name)
    columns = pa.schema([*after.columns, pa.field(rank, pa.int64())]) if rank else after.columns
    refuse_twice(columns, after.at)
    if rank and not closes and not node.revises:
        return TopOfFacts(called, columns, after.at, node, count, score, groups, rank)
    shards = Top(f"{called}.shards", after.columns, after.at, node, count, score, groups, closes, shared=True)
    return Top(called, columns, after.at, shards, count, score, groups, closes, rank=rank)


def _score(after: StepPlace, asked: TopArguments) -> str:
    score = column(after.node, asked.by, "top by")
    said = f"top({asked.count!r}, by={asked.by!r}) of {after.node.name!r}"
    if not counts(asked.count):
        raise after.refused(f"{said} keeps no row", why="count is how many rows it keeps", hint="give a whole number above zero")
    if pa.types.is_nested(score.type):
        raise after.refused(
            f"{said}: {asked.by!r} is {type_name(score.type)}",
            why="rows are put in the order of a plain value",
            hint="name a column that is no array, map or struct",
        )
    return str(score.name)
