"""Aggregates as three vectorised steps: a partial result of a batch, the union of partial results, the final value.

Accumulators are columns named after the aggregate they belong to. Every union is associative and does not depend on the
order of arrival, so that batching, partitions and restarts cannot change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headrace.operators.changes import OP, TIME
from headrace.operators.expressions.kernels import quotient

ROWS = "_rows"
Accumulators = Mapping[str, pl.Expr]
_UNTYPED = pl.Null()


@dataclass(frozen=True)
class Aggregate:
    """One aggregate call with its arguments already evaluated into columns; `filter` names a boolean column.

    `signed`: the input is a changelog, and a retraction (`_op` -1) takes its record out again.
    """

    function: str
    name: str
    inputs: tuple[str, ...] = ()
    filter: str | None = None
    kind: pl.DataType = _UNTYPED
    signed: bool = False

    def part(self, what: str) -> str:
        return f"{self.name}.{what}"

    def column(self, place: int) -> pl.Expr:
        """An argument, only of the records that the filter lets through."""
        return self.filtered(pl.col(self.inputs[place]))

    def filtered(self, values: pl.Expr) -> pl.Expr:
        return values if self.filter is None else values.filter(pl.col(self.filter))


@dataclass(frozen=True)
class Function:
    """How one aggregate function is computed. `invertible`: a partial result can also be taken out again."""

    partial: Callable[[Aggregate], Accumulators]
    merge: Callable[[Aggregate], Accumulators]
    finish: Callable[[Aggregate], pl.Expr]
    invertible: bool = False


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
    """The final values, one column an aggregate."""
    return [FUNCTIONS[aggregate.function].finish(aggregate).alias(aggregate.name) for aggregate in aggregates]


def present(frame: pl.DataFrame) -> pl.DataFrame:
    """Partial results without those whose records were all taken back: what holds nothing is no result."""
    return frame.filter(pl.col(ROWS) > 0)


def accumulators(aggregates: Sequence[Aggregate]) -> list[str]:
    """The names of all accumulator columns."""
    return [ROWS, *(name for aggregate in aggregates for name in FUNCTIONS[aggregate.function].merge(aggregate))]


def invertible(aggregates: Sequence[Aggregate]) -> bool:
    return all(FUNCTIONS[aggregate.function].invertible for aggregate in aggregates)


def _summed(*parts: str) -> Callable[[Aggregate], Accumulators]:
    return lambda aggregate: {aggregate.part(part): pl.col(aggregate.part(part)).sum() for part in parts}


def _count(aggregate: Aggregate) -> Accumulators:
    if aggregate.signed:
        return {aggregate.part("count"): _signed_count(aggregate)}
    everything = pl.len() if aggregate.filter is None else pl.col(aggregate.filter).sum()
    counted = aggregate.column(0).count() if aggregate.inputs else everything
    return {aggregate.part("count"): counted.cast(pl.Int64)}


def _signed_count(aggregate: Aggregate) -> pl.Expr:
    signs = pl.col(OP).cast(pl.Int64)
    return aggregate.filtered(signs * pl.col(aggregate.inputs[0]).is_not_null() if aggregate.inputs else signs).sum()


def _sum(aggregate: Aggregate) -> Accumulators:
    return _total(aggregate, aggregate.kind)


def _average(aggregate: Aggregate) -> Accumulators:
    return _total(aggregate, pl.Float64())


def _total(aggregate: Aggregate, kind: pl.DataType) -> Accumulators:
    values = pl.col(aggregate.inputs[0]).cast(kind)
    total = aggregate.filtered(values * pl.col(OP).cast(kind) if aggregate.signed else values).sum()
    count = _signed_count(aggregate) if aggregate.signed else aggregate.column(0).count().cast(pl.Int64)
    return {aggregate.part("sum"): total, aggregate.part("count"): count}


def _present(aggregate: Aggregate, value: pl.Expr) -> pl.Expr:
    """Null where no record had a value, as SQL asks."""
    return pl.when(pl.col(aggregate.part("count")) > 0).then(value)


def _extreme(least: bool) -> Function:
    def over(values: pl.Expr, kind: pl.DataType) -> pl.Expr:
        if not kind.is_float():
            return values.min() if least else values.max()
        # Spark holds NaN to be larger than any number; polars leaves it out.
        numbers = values.filter(values.is_not_nan())
        if least:
            return pl.when(numbers.count() > 0).then(numbers.min()).otherwise(values.max())
        return pl.when(values.is_nan().any()).then(float("nan")).otherwise(values.max())

    return Function(
        partial=lambda a: {a.part("value"): over(a.column(0), a.kind)},
        merge=lambda a: {a.part("value"): over(pl.col(a.part("value")), a.kind)},
        finish=lambda a: pl.col(a.part("value")),
    )


def _by_time(first: bool) -> Function:
    """The value with the earliest or latest event time; of equal times the smallest or largest value, whoever came first."""

    def pick(time: pl.Expr, value: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        chosen = {"by": [time, value], "descending": not first, "nulls_last": True}
        return time.sort_by(**chosen).first(), value.sort_by(**chosen).first()  # type: ignore[arg-type]

    def partial(a: Aggregate) -> Accumulators:
        time, value = pick(a.filtered(pl.col(TIME)), a.column(0))
        return {a.part("time"): time, a.part("value"): value}

    def merge(a: Aggregate) -> Accumulators:
        # A partial result without a time comes from records that the filter held back.
        known = pl.col(a.part("time")).is_not_null()
        time, value = pick(pl.col(a.part("time")).filter(known), pl.col(a.part("value")).filter(known))
        return {a.part("time"): time, a.part("value"): value}

    return Function(partial, merge, lambda a: pl.col(a.part("value")))


def _by_column(least: bool) -> Function:
    """The value beside the smallest or largest of another column; of equal ones the smallest value, whoever came first."""

    def pick(value: pl.Expr, by: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        known = by.is_not_null()
        value, by = value.filter(known), by.filter(known)
        order = [by, value]
        descending = [not least, False]
        return value.sort_by(order, descending=descending, nulls_last=True).first(), by.sort_by(
            order, descending=descending, nulls_last=True
        ).first()

    def partial(a: Aggregate) -> Accumulators:
        value, by = pick(a.column(0), a.column(1))
        return {a.part("value"): value, a.part("by"): by}

    def merge(a: Aggregate) -> Accumulators:
        value, by = pick(pl.col(a.part("value")), pl.col(a.part("by")))
        return {a.part("value"): value, a.part("by"): by}

    return Function(partial, merge, lambda a: pl.col(a.part("value")))


FUNCTIONS: dict[str, Function] = {
    "count": Function(_count, _summed("count"), lambda a: pl.col(a.part("count")), invertible=True),
    "sum": Function(_sum, _summed("sum", "count"), lambda a: _present(a, pl.col(a.part("sum"))), invertible=True),
    "avg": Function(
        _average,
        _summed("sum", "count"),
        lambda a: _present(a, quotient(pl.col(a.part("sum")), pl.col(a.part("count")).cast(pl.Float64), pl.Float64())),
        invertible=True,
    ),
    "min": _extreme(least=True),
    "max": _extreme(least=False),
    "first": _by_time(first=True),
    "last": _by_time(first=False),
    "min_by": _by_column(least=True),
    "max_by": _by_column(least=False),
}
