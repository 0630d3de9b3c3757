"""Multisets for aggregates over results that change: each item is kept with its number of occurrences, so that it can be removed again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.lists import ROW, flattened, regrouped
from headrace.operators.changes import OP, TIME

ITEMS, TIMES = "items", "times"
_VALUE = "value"


def item(*parts: pl.Expr) -> pl.Expr:
    """A record of a changelog as an item: one more occurrence, or one less."""
    return pl.struct(*parts, pl.col(OP).cast(pl.Int64).alias(TIMES))


def condensed(a: EvaluatedCall, frame: pl.DataFrame) -> pl.DataFrame:
    """Each item once, with its number of occurrences; items without any are dropped."""
    name = a.part(ITEMS)
    flat = flattened(frame, [name]).unnest(name)
    keys = [column for column in flat.columns if column != TIMES]
    counted = flat.group_by(keys).agg(pl.col(TIMES).sum()).filter(pl.col(TIMES) != 0).sort(ROW)
    return regrouped(frame, counted.select_seq(ROW, pl.struct(*keys[1:], TIMES).alias(name)))


def present(lists: pl.Series) -> pl.DataFrame:
    """The items of lists one by one, each as often as it occurs, with `_row`: the number of its list."""
    flat = flattened(lists.to_frame(ITEMS), [ITEMS]).unnest(ITEMS).filter(pl.col(TIMES) > 0)
    return flat.select_seq(pl.exclude(TIMES).repeat_by(TIMES).explode())


def revocable(function: Function, *, timed: bool = False) -> Function:
    """The same function over a changelog: it keeps all its arguments, with their times if these matter, and computes the result again."""

    def partial(a: EvaluatedCall) -> Accumulators:
        if not a.signed:
            return function.partial(a)
        arguments = [pl.col(name) for name in dict.fromkeys([*([TIME] if timed else []), *a.inputs])]
        return {a.part(ITEMS): item(*arguments).filter(*a.passing) if a.passing else item(*arguments)}

    def merge(a: EvaluatedCall) -> Accumulators:
        return {a.part(ITEMS): pl.col(a.part(ITEMS)).explode(empty_as_null=False)} if a.signed else function.merge(a)

    def condense(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
        if a.signed:
            return condensed(a, frame)
        return frame if function.condense is None else function.condense(a, frame, raw)

    def finish(a: EvaluatedCall) -> pl.Expr:
        if not a.signed:
            return function.finish(a)
        plain = replace(a, signed=False, filter=None)

        def computed(lists: pl.Series) -> pl.Series:
            parts = present(lists).group_by(ROW).agg(column.alias(name) for name, column in function.partial(plain).items())
            if function.condense is not None:
                parts = function.condense(plain, parts, True)
            found = parts.select_seq(ROW, function.finish(plain).cast(a.kind).alias(_VALUE))
            rows = pl.DataFrame({ROW: np.arange(len(lists), dtype=np.uint64)})
            return rows.join(found, on=ROW, how="left", maintain_order="left").get_column(_VALUE)

        return pl.col(a.part(ITEMS)).map_batches(computed, return_dtype=a.kind)

    return Function(partial, merge, finish, invertible=True, fault=function.fault, prepare=function.prepare, condense=condense)
