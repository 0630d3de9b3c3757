"""Aggregates as three vectorized steps: a partial result of a batch, the merge of partial results, the final value.

Accumulators are columns named after their aggregate. Every merge is associative and independent of the order of arrival, so that batching,
partitions and restarts cannot change a result; sketches keep to their stated error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from polars.dataframe.group_by import GroupBy, RollingGroupBy

from headrace.operators.aggregates import totals
from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions import collected, countmin, counts, extremes, frequent, hyperloglog, moments, quantiles
from headrace.operators.aggregates.functions import user_functions as own
from headrace.operators.aggregates.numbered_groups import NumberedGroups, distinct, doubtful, groups_of
from headrace.operators.changes import OP, TIME
from headrace.operators.frames import columns_of, rows_at, without

ROWS = "_rows"
# Why a result with records could not be computed; null where it was.
FAULT = "_fault"
_NUMBER, _TRUE = "_number of group", "_true"


def partial(
    records: pl.DataFrame,
    by: Sequence[str],
    aggregates: Sequence[EvaluatedCall],
    extra: Accumulators | None = None,
    largest: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Partial results of records by key, in no order; `extra` are further key columns, and `largest` are columns of which the largest value
    is kept."""
    most = {name: pl.col(column).max() for name, column in (largest or {}).items()}
    grouping = _Grouping(by, aggregates, {**(extra or {}), **most}, largest or {})
    first = {ROWS: pl.col(OP).cast(pl.Int64).sum()} if grouping.signed else {ROWS: pl.len().cast(pl.Int64)}
    prepared = {name: column for one in aggregates for name, column in FUNCTIONS[one.function].prepare(one).items()}
    if prepared:
        records = records.with_columns_seq(column.alias(name) for name, column in prepared.items())
    groups = groups_of(records, by)
    return _grouped(records.group_by(by), grouping, first, raw=True) if groups is None else _numbered(records, groups, grouping, first)


def merged(parts: pl.DataFrame, by: Sequence[str], aggregates: Sequence[EvaluatedCall], extra: Accumulators | None = None) -> pl.DataFrame:
    """Partial results merged by key, in no order."""
    return _grouped(parts.group_by(by), _Grouping(by, aggregates, extra or {}), {ROWS: pl.col(ROWS).sum()}, raw=False)


def merged_duplicates(
    parts: pl.DataFrame, by: Sequence[str], aggregates: Sequence[EvaluatedCall], extra: Accumulators | None = None
) -> pl.DataFrame:
    """The same, except that a row that is alone stays as it is, including `extra`: if all are, there is nothing to do."""
    columns = [*by, *(extra or {}), *accumulators(aggregates)]
    several = doubtful(parts, by) if additive(aggregates) else None
    if several is None:
        return columns_of(parts, columns) if distinct(parts, by) else merged(parts, by, aggregates, extra)
    alone, others = columns_of(parts, columns).filter(~several), parts.filter(several)
    return alone if others.is_empty() else pl.concat([alone, merged(others, by, aggregates, extra)])


def additive(aggregates: Sequence[EvaluatedCall]) -> bool:
    """Whether partial results are merged by adding them up, column by column."""
    functions = [FUNCTIONS[aggregate.function] for aggregate in aggregates]
    return all(function.invertible and function.condense is None for function in functions)


def rolled(
    parts: RollingGroupBy, by: Sequence[str], aggregates: Sequence[EvaluatedCall], extra: Accumulators | None = None
) -> pl.DataFrame:
    """Partial results merged over overlapping stretches; `by` are the columns that identify these."""
    return _grouped(parts, _Grouping(by, aggregates, extra or {}), {ROWS: pl.col(ROWS).sum()}, raw=False)


def finishes(aggregates: Sequence[EvaluatedCall]) -> list[pl.Expr]:
    """The final values, one column for each aggregate, and `_fault` where one of them cannot be emitted."""
    values = [FUNCTIONS[aggregate.function].finish(aggregate).alias(aggregate.name) for aggregate in aggregates]
    faults = [FUNCTIONS[aggregate.function].fault(aggregate) for aggregate in aggregates]
    reasons = [fault for fault in faults if fault is not None]
    return [*values, pl.coalesce(reasons).alias(FAULT)] if reasons else values


def of_no_records(aggregates: Sequence[EvaluatedCall], arguments: Sequence[tuple[str, pl.DataType]]) -> pl.DataFrame:
    """One row of accumulators, as of a record that every aggregate filters out; `arguments` are the columns that they read."""
    kinds = {**dict(arguments), TIME: pl.Int64(), _TRUE: pl.Boolean()}
    record = pl.DataFrame(schema=kinds).clear(1).with_columns_seq(pl.lit(0, pl.Int64).alias(TIME), pl.lit(False).alias(_TRUE))
    made = partial(record, (_TRUE,), [replace(aggregate, filter=_TRUE) for aggregate in aggregates])
    return made.with_columns_seq(pl.lit(0, made.schema[ROWS]).alias(ROWS))


def present(frame: pl.DataFrame) -> pl.DataFrame:
    """Partial results without those whose records were all retracted: a group without records is no result."""
    return frame.filter(frame.get_column(ROWS) > 0)


def accumulators(aggregates: Sequence[EvaluatedCall]) -> list[str]:
    """The names of all accumulator columns."""
    return [ROWS, *(name for aggregate in aggregates for name in FUNCTIONS[aggregate.function].merge(aggregate))]


@dataclass(frozen=True)
class _Grouping:
    by: Sequence[str]
    aggregates: Sequence[EvaluatedCall]
    extra: Accumulators
    largest: Mapping[str, str] = field(default_factory=dict)
    """Those of `extra` that are the largest of a column, and of which."""

    @property
    def signed(self) -> bool:
        return any(aggregate.signed for aggregate in self.aggregates)


def _grouped(parts: GroupBy | RollingGroupBy, grouping: _Grouping, first: Accumulators, *, raw: bool) -> pl.DataFrame:
    named = dict(first) | dict(grouping.extra)
    for aggregate in grouping.aggregates:
        function = FUNCTIONS[aggregate.function]
        named |= function.partial(aggregate) if raw else function.merge(aggregate)
    return _condensed(parts.agg(column.alias(name) for name, column in named.items()), grouping, raw=raw)


def _numbered(records: pl.DataFrame, groups: NumberedGroups, grouping: _Grouping, first: Accumulators) -> pl.DataFrame:
    """Partial results of numbered groups: most are sums over arrays, the others have at least one short key."""
    named, ready = dict(first) | dict(grouping.extra), dict[str, pl.Series]()
    for aggregate in grouping.aggregates:
        function = FUNCTIONS[aggregate.function]
        columns = function.dense(aggregate, records, groups)
        if columns is None:
            named |= function.partial(aggregate)
        else:
            ready |= columns
    if not grouping.signed:
        ready[ROWS] = pl.Series(groups.sizes)
        del named[ROWS]
    for name, column in grouping.largest.items():
        values = records.get_column(column)
        if not values.null_count():
            ready[name] = pl.Series(groups.largest(values.to_numpy()), dtype=values.dtype)
            del named[name]
    found = rows_at(columns_of(records, grouping.by), groups.first)
    if named:
        rest = (
            records.with_columns_seq(pl.Series(_NUMBER, groups.numbers))
            .group_by(_NUMBER)
            .agg(one.alias(name) for name, one in named.items())
        )
        found = found.hstack(without(rows_at(rest, np.argsort(rest.get_column(_NUMBER).to_numpy())), _NUMBER))
    return _condensed(found.hstack([column.alias(name) for name, column in ready.items()]), grouping, raw=True)


def _condensed(groups: pl.DataFrame, grouping: _Grouping, *, raw: bool) -> pl.DataFrame:
    for aggregate in grouping.aggregates:
        condense = FUNCTIONS[aggregate.function].condense
        if condense is not None:
            groups = condense(aggregate, groups, raw)
    return columns_of(groups, [*grouping.by, *grouping.extra, *accumulators(grouping.aggregates)])


FUNCTIONS: dict[str, Function] = {
    "count": counts.count(),
    "bool_and": counts.decision(every=True),
    "bool_or": counts.decision(every=False),
    "sum": Function(totals.partial, totals.merge, totals.sum_of, invertible=True, fault=totals.overflow, dense=totals.dense),
    "avg": Function(totals.partial, totals.merge, totals.average_of, invertible=True, fault=totals.overflow, dense=totals.dense),
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
    "own": own.user_function(),
}
