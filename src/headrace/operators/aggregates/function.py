"""The parts of an aggregate function: steps that work on the columns of many groups at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.numbered_groups import NumberedGroups

Columns = Mapping[str, pl.Series]


def _nothing(_: EvaluatedCall) -> Accumulators:
    return {}


@dataclass(frozen=True)
class Function:
    """The computation of one aggregate function: `partial` of records, `merge` of partial results, `finish` for the value.

    `prepare` makes columns of the records before they are grouped. `condense` works on the whole columns of grouped results, for what no
    expression over a group can do; it is told whether they are of records (True) or of partial results. `fault` says why a result cannot be
    emitted. `invertible`: a record can be removed again. `dense` is `partial` over numbered groups, and returns None for records that it
    cannot handle.
    """

    partial: Callable[[EvaluatedCall], Accumulators]
    merge: Callable[[EvaluatedCall], Accumulators]
    finish: Callable[[EvaluatedCall], pl.Expr]
    invertible: bool = False
    fault: Callable[[EvaluatedCall], pl.Expr | None] = lambda _: None
    prepare: Callable[[EvaluatedCall], Accumulators] = _nothing
    condense: Callable[[EvaluatedCall, pl.DataFrame, bool], pl.DataFrame] | None = None
    dense: Callable[[EvaluatedCall, pl.DataFrame, NumberedGroups], Columns | None] = lambda *_: None
