"""Values collected into arrays, and exact counts of distinct values: the state is the values themselves.

Over a changelog, each value is kept with its number of occurrences, so that it can be removed again.
"""

from __future__ import annotations

import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.counted import condensed, item, present
from headrace.operators.aggregates.functions.lists import ROW, flattened, regrouped
from headrace.operators.changes import OP, TIME

_TIME, _VALUE = "time", "value"


def collect_list() -> Function:
    """All values except nulls, in the order of their event times; for equal times the smallest value first."""
    return Function(
        lambda a: _all_of(a, _timed(a)),
        _all_together,
        _in_order,
        invertible=True,
        fault=lambda a: _too_many(a, pl.col(a.part("count"))),
        condense=_condensed,
    )


def collect_set() -> Function:
    """All values except nulls, each once, in their order."""
    return Function(
        lambda a: _each_of(a, _valued(a), _bound(a) + 1),
        lambda a: _each_together(a, _bound(a) + 1),
        _sorted,
        invertible=True,
        fault=lambda a: _too_many(a, pl.col(a.part("items")).list.len()),
        condense=_condensed,
    )


def count_distinct() -> Function:
    """The number of distinct values; several columns count together, where none of them is null."""
    return Function(
        lambda a: _each_of(a, _valued(a), None),
        lambda a: _each_together(a, None),
        lambda a: pl.col(a.part("items")).list.len().cast(pl.Int64),
        invertible=True,
        condense=_condensed,
    )


def _value(a: EvaluatedCall) -> pl.Expr:
    if len(a.inputs) > 1:
        return pl.struct(a.inputs)
    value = pl.col(a.inputs[0])
    # The two zeros are one value.
    return pl.when(value == 0).then(0.0).otherwise(value) if a.argument.is_float() and a.function != "collect_list" else value


def _known(a: EvaluatedCall) -> list[pl.Expr]:
    return [*(pl.col(name).is_not_null() for name in a.inputs), *a.passing]


def _valued(a: EvaluatedCall) -> pl.Expr:
    value = _value(a)
    return item(value.alias(_VALUE)) if a.signed else value


def _timed(a: EvaluatedCall) -> pl.Expr:
    parts = [pl.col(TIME).alias(_TIME), _value(a).alias(_VALUE)]
    return item(*parts) if a.signed else pl.struct(parts)


def _all_of(a: EvaluatedCall, item: pl.Expr) -> Accumulators:
    items = item.filter(_known(a))
    count = pl.col(OP).cast(pl.Int64).filter(_known(a)).sum() if a.signed else items.len().cast(pl.Int64)
    return {a.part("items"): items if a.signed else items.head(_bound(a) + 1), a.part("count"): count}


def _all_together(a: EvaluatedCall) -> Accumulators:
    items = pl.col(a.part("items")).explode(empty_as_null=False)
    return {a.part("items"): items if a.signed else items.head(_bound(a) + 1), a.part("count"): pl.col(a.part("count")).sum()}


def _each_of(a: EvaluatedCall, item: pl.Expr, limit: int | None) -> Accumulators:
    items = item.filter(_known(a))
    return {a.part("items"): items if a.signed else _limited(items.unique(), limit)}


def _each_together(a: EvaluatedCall, limit: int | None) -> Accumulators:
    items = pl.col(a.part("items")).explode(empty_as_null=False)
    return {a.part("items"): items if a.signed else _limited(items.unique(), limit)}


def _limited(items: pl.Expr, limit: int | None) -> pl.Expr:
    return items if limit is None else items.head(limit)


def _condensed(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    return condensed(a, frame) if a.signed else frame


def _in_order(a: EvaluatedCall) -> pl.Expr:
    def ordered(lists: pl.Series) -> pl.Series:
        flat = present(lists) if a.signed else flattened(lists.to_frame("items"), ["items"]).unnest("items")
        return regrouped(lists.to_frame("items"), flat.sort(ROW, _TIME, _VALUE).select_seq(ROW, _VALUE)).get_column(_VALUE)

    return pl.col(a.part("items")).map_batches(ordered, return_dtype=a.kind)


def _sorted(a: EvaluatedCall) -> pl.Expr:
    items = pl.col(a.part("items"))
    return (items.list.eval(pl.element().struct.field(_VALUE)) if a.signed else items).list.sort()


def _bound(a: EvaluatedCall) -> int:
    (bound,) = a.options
    assert isinstance(bound, int)
    return bound


def _too_many(a: EvaluatedCall, count: pl.Expr) -> pl.Expr:
    return pl.when(count > _bound(a)).then(pl.lit(f"{a.text} has more than {_bound(a):,} values"))
