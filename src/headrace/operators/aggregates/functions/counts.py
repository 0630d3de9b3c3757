"""Counts of records, and whether all or any of them are true: counts, so that a record can be removed again."""

from __future__ import annotations

import polars as pl

from headrace.operators.aggregates import totals
from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Columns, Function
from headrace.operators.aggregates.numbered_groups import NumberedGroups
from headrace.operators.changes import OP


def count() -> Function:
    return Function(
        _counted, lambda a: {a.part("count"): pl.col(a.part("count")).sum()}, lambda a: pl.col(a.part("count")), invertible=True,
        dense=_dense,
    )  # fmt: skip


def decision(every: bool) -> Function:
    """Whether every value is true, or any; null where there is none."""

    def partial(a: EvaluatedCall) -> Accumulators:
        value = pl.col(a.inputs[0])
        sign = pl.col(OP).cast(pl.Int64) if a.signed else pl.lit(1, pl.Int64)
        return {
            a.part("true"): a.filtered(sign * value).sum().cast(pl.Int64),
            a.part("false"): a.filtered(sign * value.not_()).sum().cast(pl.Int64),
        }

    def merge(a: EvaluatedCall) -> Accumulators:
        return {a.part(what): pl.col(a.part(what)).sum() for what in ("true", "false")}

    def finish(a: EvaluatedCall) -> pl.Expr:
        yes, no = pl.col(a.part("true")), pl.col(a.part("false"))
        return pl.when(yes + no > 0).then(no == 0 if every else yes > 0)

    return Function(partial, merge, finish, invertible=True)


def _dense(aggregate: EvaluatedCall, records: pl.DataFrame, groups: NumberedGroups) -> Columns | None:
    if aggregate.signed:
        return None
    return {aggregate.part("count"): pl.Series(groups.counted(aggregate.chosen(records)), dtype=pl.Int64)}


def _counted(aggregate: EvaluatedCall) -> Accumulators:
    if aggregate.signed:
        return {aggregate.part("count"): totals.counted(aggregate)}
    everything = pl.len() if aggregate.filter is None else pl.col(aggregate.filter).sum()
    counted = aggregate.column(0).count() if aggregate.inputs else everything
    return {aggregate.part("count"): counted.cast(pl.Int64)}
