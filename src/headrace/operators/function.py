"""What an aggregate function is made of: steps that work on the columns of many groups at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.dense import Groups

Columns = Mapping[str, pl.Series]


def _nothing(_: Aggregate) -> Accumulators:
    return {}


@dataclass(frozen=True)
class Function:
    """How one aggregate function is computed: `partial` of records, `merge` of partial results, `finish` the value.

    `prepare` makes columns of the records before they are grouped. `condense` goes over the whole columns of grouped results,
    for what no expression over a group can do; it is told whether they are of records (True) or of partial results. `fault`
    says, where a result cannot be given out, why. `invertible`: a record can be taken out again. `dense` is `partial` over numbered
    groups, and gives None for records that it can't do.
    """

    partial: Callable[[Aggregate], Accumulators]
    merge: Callable[[Aggregate], Accumulators]
    finish: Callable[[Aggregate], pl.Expr]
    invertible: bool = False
    fault: Callable[[Aggregate], pl.Expr | None] = lambda _: None
    prepare: Callable[[Aggregate], Accumulators] = _nothing
    condense: Callable[[Aggregate, pl.DataFrame, bool], pl.DataFrame] | None = None
    dense: Callable[[Aggregate, pl.DataFrame, Groups], Columns | None] = lambda *_: None
