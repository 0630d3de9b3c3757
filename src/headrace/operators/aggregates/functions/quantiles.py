"""approx_percentile: a sample with weights that halves itself when it is full (the compactors of Karnin, Lang and Liberty).

Every value begins at level 0; a full level is sorted, and every second value moves to the next level, where it stands for two. A hash of
the values chooses the even or the odd ones, so that a replay chooses the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.hashing import hashes, mixed
from headrace.operators.aggregates.functions.lists import ROW, elements, flattened, regrouped

# With levels of this many values for each unit of accuracy, 1/accuracy is two to four standard deviations of a rank.
_ROOM = 3
_VALUES, _LEVELS = "values", "levels"


def approx_percentile() -> Function:
    return Function(_partial, _merge, _finish, condense=_condensed)


def _accuracy(a: EvaluatedCall) -> int:
    accuracy = a.options[0]
    assert isinstance(accuracy, int)
    return accuracy


def _partial(a: EvaluatedCall) -> Accumulators:
    values = a.column(0).drop_nulls()
    return {a.part(_VALUES): values, a.part(_LEVELS): pl.lit(0, pl.UInt8).repeat_by(values.len()).explode(empty_as_null=False)}


def _merge(a: EvaluatedCall) -> Accumulators:
    return {a.part(what): pl.col(a.part(what)).explode(empty_as_null=False) for what in (_VALUES, _LEVELS)}


def _condensed(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    """Halve the levels that are full."""
    values, levels = a.part(_VALUES), a.part(_LEVELS)
    room = _ROOM * _accuracy(a)
    large = frame.get_column(values).list.len() >= room
    if not large.any():
        return frame
    flat = flattened(frame.filter(large), [values, levels]).rename({values: _VALUES, levels: _LEVELS})
    level = 0
    while (flat.get_column(_LEVELS) >= level).any():
        flat = _halved(flat, level, room)
        level += 1
    kept = regrouped(frame.filter(large), flat.sort(ROW, maintain_order=True).rename({_VALUES: values, _LEVELS: levels}))
    place = pl.arange(pl.len()).filter(large)
    order = pl.concat([frame.select_seq(pl.arange(pl.len()).filter(~large)), frame.select_seq(place)]).to_series()
    return pl.concat([frame.filter(~large), kept])[order.arg_sort()]


def _halved(flat: pl.DataFrame, level: int, room: int) -> pl.DataFrame:
    """Each full sample of one level, half as many a level higher; of an odd number the largest value stays."""
    here = pl.col(_LEVELS) == level
    full = pl.col(_LEVELS).filter(here).len().over(ROW) >= room
    chosen = flat.filter(here & full).sort(ROW, _VALUES)
    if chosen.is_empty():
        return flat
    number, size = pl.int_range(pl.len()).over(ROW), pl.len().over(ROW)
    single = (number == size - 1) & (size % 2 == 1)
    placed = chosen.with_columns_seq(number.alias("_number"), single.alias("_single"), _coin(chosen, level))
    staying = placed.filter("_single").select_seq(flat.columns)
    promoted = placed.filter(~pl.col("_single") & (pl.col("_number") % 2 == pl.col("_coin")))
    promoted = promoted.select_seq(flat.columns).with_columns_seq(pl.lit(level + 1, pl.UInt8).alias(_LEVELS))
    return pl.concat([flat.filter(~(here & full)), staying, promoted])


def _coin(chosen: pl.DataFrame, level: int) -> pl.Series:
    """0 or 1 for each sample, by a hash of its values."""
    rows = chosen.get_column(ROW).to_numpy()
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    sums = np.add.reduceat(hashes(chosen.get_column(_VALUES)), starts)
    coins = mixed(sums + np.uint64(level)) & np.uint64(1)
    return pl.Series("_coin", np.repeat(coins, np.diff(np.append(starts, len(rows)))).astype(np.int64))


def _finish(a: EvaluatedCall) -> pl.Expr:
    shares = [share for share in a.options[1:] if isinstance(share, float)]
    kind = a.kind
    each = kind.inner if isinstance(kind, pl.List) else kind

    def chosen(parts: Sequence[pl.Series]) -> pl.Series:
        found = [_quantile(parts[0], parts[1], share, 1.0 / _accuracy(a)).cast(each) for share in shares]
        if not isinstance(kind, pl.List):
            return found[0]
        known = parts[0].list.len() > 0
        listed = pl.DataFrame(found, [str(place) for place in range(len(found))])
        return listed.select_seq(pl.when(pl.lit(known)).then(pl.concat_list(pl.all()))).to_series()

    return pl.map_batches([a.part(_VALUES), a.part(_LEVELS)], chosen, return_dtype=kind)


def _quantile(values: pl.Series, levels: pl.Series, share: float, error: float) -> pl.Series:
    """The smallest value that a share of the values does not exceed; null for no values."""
    flat = flattened(pl.DataFrame([values.alias(_VALUES), levels.alias(_LEVELS)]), [_VALUES, _LEVELS]).sort(ROW, _VALUES)
    if flat.is_empty():
        return pl.Series([None] * len(values), dtype=elements(values).dtype)
    weights = np.left_shift(1, flat.get_column(_LEVELS).to_numpy().astype(np.int64))
    upto = np.cumsum(weights)
    rows = flat.get_column(ROW).to_numpy().astype(np.int64)
    total = np.bincount(rows, weights, minlength=len(values)).astype(np.int64)
    before = np.cumsum(total) - total
    # As in Spark: a rank nearer to an end than the error is that end.
    inner = np.clip(np.ceil(share * total).astype(np.int64), 1, None)
    rank = np.ones_like(total) if share <= error else total if share >= 1.0 - error else inner
    places = np.searchsorted(upto, before + np.maximum(rank, 1))
    found = flat.get_column(_VALUES)[np.minimum(places, len(upto) - 1)]
    return found.to_frame("found").select_seq(pl.when(pl.Series(total > 0)).then(pl.col("found"))).to_series()
