"""Aggregates that the user wrote."""

from __future__ import annotations

import polars as pl

from headrace.core.schema import data_type
from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.changes import ADD, OP
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.function import Function
from headrace.plan.own import Aggregate as Own


def own() -> Function:
    return Function(_partial, _merge, _finish)


def _implementation(a: Aggregate) -> Own:
    assert a.own is not None
    return a.own


def _partial(a: Aggregate) -> Accumulators:
    if not a.signed:
        return _named(a, _implementation(a).partial(*(a.column(place) for place in range(len(a.inputs)))))
    given, taken = (
        _named(a, _implementation(a).partial(*(pl.col(name).filter(sign, *a.passing) for name in a.inputs)))
        for sign in (pl.col(OP) == ADD, pl.col(OP) != ADD)
    )
    return {name: given[name] - taken[name] for name in given}


def _merge(a: Aggregate) -> Accumulators:
    return _named(a, _implementation(a).merge(_state(a)))


def _finish(a: Aggregate) -> pl.Expr:
    return _implementation(a).finish(_state(a)).cast(a.kind)


def _state(a: Aggregate) -> dict[str, pl.Expr]:
    return {name: pl.col(a.part(name)) for name in _implementation(a).state}


def _named(a: Aggregate, parts: Accumulators) -> Accumulators:
    kinds = {name: dtype(data_type(kind)) for name, kind in _implementation(a).state.items()}
    # A list is not cast: in a group its elements stand for themselves.
    return {a.part(name): parts[name] if kind.is_nested() else parts[name].cast(kind) for name, kind in kinds.items()}
