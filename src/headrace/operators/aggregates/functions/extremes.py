"""The smallest and largest value, the first and last by event time, and values at the smallest or largest of another column."""

from __future__ import annotations

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.counted import revocable
from headrace.operators.aggregates.functions.lists import ROW, flattened, regrouped
from headrace.operators.changes import TIME

_BY, _VALUE = "by", "value"


def extreme(least: bool) -> Function:
    return revocable(
        Function(
            partial=lambda a: {a.part("value"): _end(a.column(0), a.kind, least)},
            merge=lambda a: {a.part("value"): _end(pl.col(a.part("value")), a.kind, least)},
            finish=lambda a: pl.col(a.part("value")),
        )
    )


def by_time(first: bool) -> Function:
    """The value with the earliest or latest event time; for equal times the smallest or largest value, independent of arrival.

    With the option True, nulls are skipped.
    """

    def pick(a: EvaluatedCall, time: pl.Expr, value: pl.Expr, *known: pl.Expr) -> Accumulators:
        end = _end(time.filter(*known) if known else time, pl.Int64(), first)
        return {a.part("time"): end, a.part("value"): _end(value.filter(time.eq_missing(end), *known), a.kind, first)}

    def partial(a: EvaluatedCall) -> Accumulators:
        value = pl.col(a.inputs[0])
        return pick(a, pl.col(TIME), value, *a.passing, *([value.is_not_null()] if a.options == (True,) else []))

    def merge(a: EvaluatedCall) -> Accumulators:
        # A partial result without a time comes from records that did not pass the filter.
        time = pl.col(a.part("time"))
        return pick(a, time, pl.col(a.part("value")), time.is_not_null())

    return revocable(Function(partial, merge, lambda a: pl.col(a.part("value"))), timed=True)


def by_column(least: bool) -> Function:
    """The value at the smallest or largest of another column; for equal ones the smallest value, independent of arrival."""

    def pick(a: EvaluatedCall, value: pl.Expr, by: pl.Expr, *known: pl.Expr) -> Accumulators:
        end = _end(by.filter(by.is_not_null(), *known), a.taken, least)
        at_end = value.filter(by.is_not_null(), by.eq_missing(end), *known)
        return {a.part("by"): end, a.part("value"): _end(at_end, a.kind, least=True)}

    def partial(a: EvaluatedCall) -> Accumulators:
        return pick(a, pl.col(a.inputs[0]), pl.col(a.inputs[1]), *a.passing)

    def merge(a: EvaluatedCall) -> Accumulators:
        return pick(a, pl.col(a.part("value")), pl.col(a.part("by")))

    return revocable(Function(partial, merge, lambda a: pl.col(a.part("value"))))


def several_by_column(least: bool) -> Function:
    """The values at the k smallest or largest of another column, in their order; for equal ones the smallest values."""

    def partial(a: EvaluatedCall) -> Accumulators:
        value, by = (pl.col(name) for name in a.inputs)
        return {a.part("pairs"): pl.struct(by.alias(_BY), value.alias(_VALUE)).filter(by.is_not_null(), *a.passing)}

    def merge(a: EvaluatedCall) -> Accumulators:
        return {a.part("pairs"): pl.col(a.part("pairs")).explode(empty_as_null=False)}

    def condense(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
        name = a.part("pairs")
        flat = flattened(frame, [name]).unnest(name).sort(ROW, _BY, descending=[False, not least])
        # Values decide among equals only, and then few are left.
        flat = flat.filter(_places(flat.get_column(ROW), flat.get_column(_BY)) < a.options[0])
        flat = flat.sort(ROW, _BY, _VALUE, descending=[False, not least, False], nulls_last=True)
        return regrouped(
            frame, flat.filter(_places(flat.get_column(ROW)) < a.options[0]).select_seq(ROW, pl.struct(_BY, _VALUE).alias(name))
        )

    def finish(a: EvaluatedCall) -> pl.Expr:
        pairs = pl.col(a.part("pairs"))
        return pl.when(pairs.list.len() > 0).then(pairs.list.eval(pl.element().struct.field(_VALUE)))

    return revocable(Function(partial, merge, finish, condense=condense))


def _places(rows: pl.Series, by: pl.Series | None = None) -> np.ndarray:
    """The place of each element in its group, from zero; equals in `by` have the place of the first of them."""
    numbers = rows.to_numpy()
    places = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
    if by is None or not len(by):
        return places
    new = ((rows != rows.shift()) | by.ne_missing(by.shift())).fill_null(True).to_numpy()
    return np.asarray(places[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))])


def _end(values: pl.Expr, kind: pl.DataType, least: bool) -> pl.Expr:
    """The smallest or largest value, in Spark's order."""
    if kind.is_nested():
        return values.first()
    if not kind.is_float():
        return values.min() if least else values.max()
    # Spark orders NaN above any number; polars ignores it.
    numbers = values.filter(values.is_not_nan())
    if least:
        return pl.when(numbers.count() > 0).then(numbers.min()).otherwise(values.max())
    return pl.when(values.is_nan().any()).then(float("nan")).otherwise(values.max())
