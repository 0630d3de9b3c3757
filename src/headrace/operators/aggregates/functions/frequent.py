"""approx_top_k: the most frequent values, by the counters of Misra and Gries.

At most `max_items_tracked` values are counted. When there are more, the count of the next one is subtracted from all, and values at zero
are dropped; the total that was subtracted is added to every count again, so that none is too small. As long as there are no more values
than counters, every count is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.lists import ROW, flattened, regrouped

_ITEMS, _COUNTS, _TAKEN = "items", "counts", "taken"


def approx_top_k() -> Function:
    return Function(_partial, _merge, _finish, condense=_condensed)


def _partial(a: EvaluatedCall) -> Accumulators:
    items = a.column(0)
    ones = pl.lit(1, pl.Int64).repeat_by(items.len()).explode(empty_as_null=False)
    return {a.part(_ITEMS): items, a.part(_COUNTS): ones, a.part(_TAKEN): pl.lit(0, pl.Int64).first()}


def _merge(a: EvaluatedCall) -> Accumulators:
    lists = {a.part(what): pl.col(a.part(what)).explode(empty_as_null=False, keep_nulls=True) for what in (_ITEMS, _COUNTS)}
    return lists | {a.part(_TAKEN): pl.col(a.part(_TAKEN)).sum()}


def _condensed(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    """Each value once, and no more of them than there are counters."""
    items, counts, taken = a.part(_ITEMS), a.part(_COUNTS), a.part(_TAKEN)
    flat = summed(flattened(frame, [items, counts]), items, counts)
    room = int(a.options[1])
    if flat.height > room and flat.select_seq(pl.len().over(ROW).max()).item() > room:
        flat = flat.sort(ROW, counts, descending=[False, True])
        next_one = pl.col(counts).slice(room, 1).first().over(ROW).fill_null(0)
        flat = flat.with_columns_seq(next_one.alias("_next"))
        lost = np.zeros(len(frame), np.int64)
        lost[flat.get_column(ROW).to_numpy()] = flat.get_column("_next").to_numpy()
        flat = flat.with_columns_seq(pl.col(counts) - pl.col("_next")).filter(pl.col(counts) > 0).drop("_next")
        frame = frame.with_columns_seq(pl.col(taken) + pl.Series(lost))
    return regrouped(frame, flat)


def summed(flat: pl.DataFrame, items: str, counts: str) -> pl.DataFrame:
    """The count of each value of each group, in the order of groups."""
    return flat.group_by(ROW, items).agg(pl.col(counts).sum()).sort(ROW)


def _finish(a: EvaluatedCall) -> pl.Expr:
    kind = a.kind

    def top(parts: Sequence[pl.Series]) -> pl.Series:
        frame = pl.DataFrame([part.alias(name) for part, name in zip(parts, (_ITEMS, _COUNTS, _TAKEN), strict=True)])
        flat = flattened(frame, [_ITEMS, _COUNTS]).sort(ROW, _COUNTS, _ITEMS, descending=[False, True, False])
        rows = flat.get_column(ROW).to_numpy()
        flat = flat.filter(np.arange(len(rows)) - np.searchsorted(rows, rows) < a.options[0])
        taken = frame.get_column(_TAKEN)[flat.get_column(ROW)]
        pairs = flat.select_seq(ROW, pl.struct(pl.col(_ITEMS).alias("item"), (pl.col(_COUNTS) + taken).alias("count")).alias("pairs"))
        return regrouped(frame, pairs).get_column("pairs").cast(kind)

    return pl.map_batches([a.part(_ITEMS), a.part(_COUNTS), a.part(_TAKEN)], top, return_dtype=kind)
