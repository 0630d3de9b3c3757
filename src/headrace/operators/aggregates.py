"""Aggregates as three vectorised steps: a partial result of a batch, the union of partial results, the final value.

Accumulators are columns named after the aggregate they belong to. Every union is associative and does not depend on the
order of arrival, so that batching, partitions and restarts cannot change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators import totals
from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.changes import OP, TIME

ROWS = "_rows"
# Why a result that has records could not be computed; null where it was.
FAULT = "_fault"


@dataclass(frozen=True)
class Function:
    """How one aggregate function is computed. `invertible`: a partial result can also be taken out again.

    `overflows` tells where a result does not fit its type; None where that cannot be.
    """

    partial: Callable[[Aggregate], Accumulators]
    merge: Callable[[Aggregate], Accumulators]
    finish: Callable[[Aggregate], pl.Expr]
    invertible: bool = False
    overflows: Callable[[Aggregate], pl.Expr | None] = lambda _: None


def partials(aggregates: Sequence[Aggregate], extra: Accumulators | None = None) -> list[pl.Expr]:
    """Expressions for `group_by().agg()` over records."""
    signed = any(aggregate.signed for aggregate in aggregates)
    named = {ROWS: (pl.col(OP).cast(pl.Int64).sum() if signed else pl.len().cast(pl.Int64))} | dict(extra or {})
    for aggregate in aggregates:
        named |= FUNCTIONS[aggregate.function].partial(aggregate)
    return [expression.alias(name) for name, expression in named.items()]


def merges(aggregates: Sequence[Aggregate], extra: Accumulators | None = None) -> list[pl.Expr]:
    """Expressions for `group_by().agg()` over partial results."""
    named: dict[str, pl.Expr] = {ROWS: pl.col(ROWS).sum()} | dict(extra or {})
    for aggregate in aggregates:
        named |= FUNCTIONS[aggregate.function].merge(aggregate)
    return [expression.alias(name) for name, expression in named.items()]


def finishes(aggregates: Sequence[Aggregate]) -> list[pl.Expr]:
    """The final values, one column an aggregate, and `_fault` where one of them may not fit its type."""
    values = [FUNCTIONS[aggregate.function].finish(aggregate).alias(aggregate.name) for aggregate in aggregates]
    flags = [(aggregate, FUNCTIONS[aggregate.function].overflows(aggregate)) for aggregate in aggregates]
    reasons = [pl.when(flag).then(pl.lit(f"overflow in {aggregate.text}")) for aggregate, flag in flags if flag is not None]
    return [*values, pl.coalesce(reasons).alias(FAULT)] if reasons else values


def present(frame: pl.DataFrame) -> pl.DataFrame:
    """Partial results without those whose records were all taken back: what holds nothing is no result."""
    return frame.filter(pl.col(ROWS) > 0)


def accumulators(aggregates: Sequence[Aggregate]) -> list[str]:
    """The names of all accumulator columns."""
    return [ROWS, *(name for aggregate in aggregates for name in FUNCTIONS[aggregate.function].merge(aggregate))]


def invertible(aggregates: Sequence[Aggregate]) -> bool:
    return all(FUNCTIONS[aggregate.function].invertible for aggregate in aggregates)


def _count(aggregate: Aggregate) -> Accumulators:
    if aggregate.signed:
        return {aggregate.part("count"): totals.counted(aggregate)}
    everything = pl.len() if aggregate.filter is None else pl.col(aggregate.filter).sum()
    counted = aggregate.column(0).count() if aggregate.inputs else everything
    return {aggregate.part("count"): counted.cast(pl.Int64)}


def _extreme(least: bool) -> Function:
    return Function(
        partial=lambda a: {a.part("value"): _end(a.column(0), a.kind, least)},
        merge=lambda a: {a.part("value"): _end(pl.col(a.part("value")), a.kind, least)},
        finish=lambda a: pl.col(a.part("value")),
    )


def _end(values: pl.Expr, kind: pl.DataType, least: bool) -> pl.Expr:
    """The smallest or largest value, in the order of Spark."""
    if kind.is_nested():
        return values.first()
    if not kind.is_float():
        return values.min() if least else values.max()
    # Spark holds NaN to be larger than any number; polars leaves it out.
    numbers = values.filter(values.is_not_nan())
    if least:
        return pl.when(numbers.count() > 0).then(numbers.min()).otherwise(values.max())
    return pl.when(values.is_nan().any()).then(float("nan")).otherwise(values.max())


def _by_time(first: bool) -> Function:
    """The value with the earliest or latest event time; of equal times the smallest or largest value, whoever came first."""

    def pick(a: Aggregate, time: pl.Expr, value: pl.Expr, *known: pl.Expr) -> Accumulators:
        end = _end(time.filter(*known) if known else time, pl.Int64(), first)
        return {a.part("time"): end, a.part("value"): _end(value.filter(time.eq_missing(end), *known), a.kind, first)}

    def partial(a: Aggregate) -> Accumulators:
        return pick(a, pl.col(TIME), pl.col(a.inputs[0]), *_passing(a))

    def merge(a: Aggregate) -> Accumulators:
        # A partial result without a time comes from records that the filter held back.
        time = pl.col(a.part("time"))
        return pick(a, time, pl.col(a.part("value")), time.is_not_null())

    return Function(partial, merge, lambda a: pl.col(a.part("value")))


def _by_column(least: bool) -> Function:
    """The value beside the smallest or largest of another column; of equal ones the smallest value, whoever came first."""

    def pick(a: Aggregate, value: pl.Expr, by: pl.Expr, *known: pl.Expr) -> Accumulators:
        end = _end(by.filter(by.is_not_null(), *known), a.taken, least)
        beside = value.filter(by.is_not_null(), by.eq_missing(end), *known)
        return {a.part("by"): end, a.part("value"): _end(beside, a.kind, least=True)}

    def partial(a: Aggregate) -> Accumulators:
        return pick(a, pl.col(a.inputs[0]), pl.col(a.inputs[1]), *_passing(a))

    def merge(a: Aggregate) -> Accumulators:
        return pick(a, pl.col(a.part("value")), pl.col(a.part("by")))

    return Function(partial, merge, lambda a: pl.col(a.part("value")))


def _passing(aggregate: Aggregate) -> list[pl.Expr]:
    """The condition of a filtered aggregate, if it is one."""
    return [] if aggregate.filter is None else [pl.col(aggregate.filter)]


FUNCTIONS: dict[str, Function] = {
    "count": Function(
        _count,
        lambda a: {a.part("count"): pl.col(a.part("count")).sum()},
        lambda a: pl.col(a.part("count")),
        invertible=True,
    ),
    "sum": Function(totals.partial, totals.merge, totals.sum_of, invertible=True, overflows=totals.overflows),
    "avg": Function(totals.partial, totals.merge, totals.average_of, invertible=True, overflows=totals.overflows),
    "min": _extreme(least=True),
    "max": _extreme(least=False),
    "first": _by_time(first=True),
    "last": _by_time(first=False),
    "min_by": _by_column(least=True),
    "max_by": _by_column(least=False),
}
