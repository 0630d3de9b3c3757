"""Aggregates as three vectorised steps: a partial result of a batch, the union of partial results, the final value.

Accumulators are columns named after the aggregate they belong to. Every union is associative and does not depend on the
order of arrival, so that batching, partitions and restarts cannot change a result; sketches keep to their stated error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars.dataframe.group_by import GroupBy, RollingGroupBy

from headrace.operators import totals
from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.changes import OP
from headrace.operators.function import Function
from headrace.operators.functions import collected, countmin, counts, extremes, frequent, hyperloglog, moments, own, quantiles

ROWS = "_rows"
# Why a result that has records could not be computed; null where it was.
FAULT = "_fault"


def partial(records: pl.DataFrame, by: Sequence[str], aggregates: Sequence[Aggregate], extra: Accumulators | None = None) -> pl.DataFrame:
    """Partial results of records by key, in no order; `extra` are further columns of theirs."""
    signed = any(aggregate.signed for aggregate in aggregates)
    first = {ROWS: (pl.col(OP).cast(pl.Int64).sum() if signed else pl.len().cast(pl.Int64))}
    prepared = {name: column for one in aggregates for name, column in FUNCTIONS[one.function].prepare(one).items()}
    if prepared:
        records = records.with_columns(column.alias(name) for name, column in prepared.items())
    return _grouped(records.group_by(by), _Grouping(by, aggregates, extra or {}), first, raw=True)


def merged(parts: pl.DataFrame, by: Sequence[str], aggregates: Sequence[Aggregate], extra: Accumulators | None = None) -> pl.DataFrame:
    """Partial results united by key, in no order."""
    return _grouped(parts.group_by(by), _Grouping(by, aggregates, extra or {}), {ROWS: pl.col(ROWS).sum()}, raw=False)


def rolled(parts: RollingGroupBy, by: Sequence[str], aggregates: Sequence[Aggregate], extra: Accumulators | None = None) -> pl.DataFrame:
    """Partial results united over stretches that overlap; `by` are the columns that tell these apart."""
    return _grouped(parts, _Grouping(by, aggregates, extra or {}), {ROWS: pl.col(ROWS).sum()}, raw=False)


def finishes(aggregates: Sequence[Aggregate]) -> list[pl.Expr]:
    """The final values, one column an aggregate, and `_fault` where one of them cannot be given out."""
    values = [FUNCTIONS[aggregate.function].finish(aggregate).alias(aggregate.name) for aggregate in aggregates]
    faults = [FUNCTIONS[aggregate.function].fault(aggregate) for aggregate in aggregates]
    reasons = [fault for fault in faults if fault is not None]
    return [*values, pl.coalesce(reasons).alias(FAULT)] if reasons else values


def present(frame: pl.DataFrame) -> pl.DataFrame:
    """Partial results without those whose records were all taken back: what holds nothing is no result."""
    return frame.filter(pl.col(ROWS) > 0)


def accumulators(aggregates: Sequence[Aggregate]) -> list[str]:
    """The names of all accumulator columns."""
    return [ROWS, *(name for aggregate in aggregates for name in FUNCTIONS[aggregate.function].merge(aggregate))]


@dataclass(frozen=True)
class _Grouping:
    by: Sequence[str]
    aggregates: Sequence[Aggregate]
    extra: Accumulators


def _grouped(parts: GroupBy | RollingGroupBy, grouping: _Grouping, first: Accumulators, *, raw: bool) -> pl.DataFrame:
    named = dict(first) | dict(grouping.extra)
    functions = [(aggregate, FUNCTIONS[aggregate.function]) for aggregate in grouping.aggregates]
    for aggregate, function in functions:
        named |= function.partial(aggregate) if raw else function.merge(aggregate)
    groups = parts.agg(column.alias(name) for name, column in named.items())
    for aggregate, function in functions:
        if function.condense is not None:
            groups = function.condense(aggregate, groups, raw)
    return groups.select(*grouping.by, *grouping.extra, *accumulators(grouping.aggregates))


FUNCTIONS: dict[str, Function] = {
    "count": counts.count(),
    "bool_and": counts.decision(every=True),
    "bool_or": counts.decision(every=False),
    "sum": Function(totals.partial, totals.merge, totals.sum_of, invertible=True, fault=totals.overflow),
    "avg": Function(totals.partial, totals.merge, totals.average_of, invertible=True, fault=totals.overflow),
    "var_samp": moments.variance(sample=True, root=False),
    "var_pop": moments.variance(sample=False, root=False),
    "stddev_samp": moments.variance(sample=True, root=True),
    "stddev_pop": moments.variance(sample=False, root=True),
    "min": extremes.extreme(least=True),
    "max": extremes.extreme(least=False),
    "first": extremes.by_time(first=True),
    "last": extremes.by_time(first=False),
    "min_by": extremes.by_column(least=True),
    "max_by": extremes.by_column(least=False),
    "several_min_by": extremes.several_by_column(least=True),
    "several_max_by": extremes.several_by_column(least=False),
    "collect_list": collected.collect_list(),
    "collect_set": collected.collect_set(),
    "count_distinct": collected.count_distinct(),
    "approx_count_distinct": hyperloglog.approx_count_distinct(),
    "approx_percentile": quantiles.approx_percentile(),
    "approx_top_k": frequent.approx_top_k(),
    "heavy_hitters": countmin.heavy_hitters(),
    "own": own.own(),
}
