"""Aggregates that users write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import polars as pl

from headrace.core.columns.schema import data_type
from headrace.core.errors import PlanError
from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.changes import ADD, OP
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.user_errors import raised
from headrace.plan.aggregates.user_aggregate import Aggregate as Own

_GROUP = "_group"


def user_function() -> Function:
    return Function(_partial, _merge, _finish)


def rehearse(a: EvaluatedCall, kinds: Mapping[str, pl.DataType], where: str | None) -> None:
    """Compute it over no records, with columns of these types: what fails then fails for any."""
    written = _implementation(a)
    groups = pl.DataFrame(schema={**kinds, OP: pl.Int8(), _GROUP: pl.Int32()})
    for step, parts in ((written.partial, _partial), (written.merge, _merge)):
        with _refused(a, step, where):
            groups = groups.group_by(_GROUP).agg(**parts(a))
    with _refused(a, written.finish, where):
        groups.select_seq(_finish(a))


@contextmanager
def _refused(a: EvaluatedCall, step: Callable[..., object], where: str | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise PlanError(
            f"{a.text}: {step.__name__} of {type(a.own).__name__} fails: {raised(error, step)}",
            why="it is computed for all groups at once, so no single record could be identified as the bad one",
            hint="partial and merge return a polars expression for each part of its state, finish returns one for the result",
            where=where,
        ) from error


def _implementation(a: EvaluatedCall) -> Own:
    assert a.own is not None
    return a.own


def _partial(a: EvaluatedCall) -> Accumulators:
    if not a.signed:
        return _named(a, _implementation(a).partial(*(a.column(place) for place in range(len(a.inputs)))))
    given, taken = (
        _named(a, _implementation(a).partial(*(pl.col(name).filter(sign, *a.passing) for name in a.inputs)))
        for sign in (pl.col(OP) == ADD, pl.col(OP) != ADD)
    )
    return {name: given[name] - taken[name] for name in given}


def _merge(a: EvaluatedCall) -> Accumulators:
    return _named(a, _implementation(a).merge(_state(a)))


def _finish(a: EvaluatedCall) -> pl.Expr:
    return _implementation(a).finish(_state(a)).cast(a.kind)


def _state(a: EvaluatedCall) -> dict[str, pl.Expr]:
    return {name: pl.col(a.part(name)) for name in _implementation(a).state}


def _named(a: EvaluatedCall, parts: Accumulators) -> Accumulators:
    kinds = {name: dtype(data_type(kind)) for name, kind in _implementation(a).state.items()}
    missing = next((name for name in kinds if name not in parts), None)
    if missing is not None:
        raise ValueError(f"no part {missing!r} of its state")
    # A list is not cast: in a group its elements stand for themselves.
    return {a.part(name): parts[name] if kind.is_nested() else parts[name].cast(kind) for name, kind in kinds.items()}
