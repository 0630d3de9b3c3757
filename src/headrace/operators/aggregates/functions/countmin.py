"""heavy_hitters: the values that make up at least a share of all, found with a Count-Min sketch for each group.

A group of few values counts each of them. A group of more is a sketch. A sketch never counts too little, and a value with a share of the
whole has that share of at least one part of it. So it is enough to keep candidates in every part, and no heavy value is missed. Cells that
are zero are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.frequent import summed
from headrace.operators.aggregates.functions.hashing import hashes, mixed
from headrace.operators.aggregates.functions.lists import ROW, flattened, gathered, regrouped

# Each value has a cell in this many rows of the sketch; a count is off by more than its error in e**-5 of cases.
_DEPTH = 5
# A count is too large by at most a tenth of the requested share.
_FINER = 10
# Up to this many values are counted individually.
_FEW = 256
_ITEMS, _COUNTS, _CELLS, _WEIGHTS, _TOTAL = "items", "counts", "cells", "weights", "total"
_WIDE = np.uint64(32)


def heavy_hitters() -> Function:
    return Function(_partial, _merge, _finish, condense=_condensed)


def width(share: float) -> int:
    """The number of cells in a row.

    >>> width(0.01)
    2719
    """
    return math.ceil(math.e * _FINER / share)


def _share(a: EvaluatedCall) -> float:
    (share,) = a.options
    assert isinstance(share, float)
    return share


def _partial(a: EvaluatedCall) -> Accumulators:
    items = a.column(0).drop_nulls()
    ones = pl.lit(1, pl.Int64).repeat_by(items.len()).explode(empty_as_null=False)
    empty = {a.part(_CELLS): pl.lit(None, pl.UInt32), a.part(_WEIGHTS): pl.lit(None, pl.Int64)}
    nothing = {name: value.repeat_by(0).explode(empty_as_null=False) for name, value in empty.items()}
    return {a.part(_ITEMS): items, a.part(_COUNTS): ones, **nothing, a.part(_TOTAL): items.len().cast(pl.Int64)}


def _merge(a: EvaluatedCall) -> Accumulators:
    lists = {a.part(what): pl.col(a.part(what)).explode(empty_as_null=False) for what in (_ITEMS, _COUNTS, _CELLS, _WEIGHTS)}
    return lists | {a.part(_TOTAL): pl.col(a.part(_TOTAL)).sum()}


def _condensed(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    """Each value once, in groups of few; in groups of many the counts become a sketch, and only candidates remain."""
    items, counts = a.part(_ITEMS), a.part(_COUNTS)
    flat = summed(flattened(frame, [items, counts]), items, counts)
    rows = flat.get_column(ROW).to_numpy().astype(np.int64)
    many = np.bincount(rows, minlength=len(frame)) > _FEW
    many |= frame.get_column(a.part(_CELLS)).list.len().to_numpy() > 0
    if not many.any():
        return regrouped(frame, flat)
    chosen = flat.filter(many[rows])
    cells = _cells(chosen, items, width(_share(a)))
    sketch = _sketch(a, frame).added(cells.ravel(), np.tile(chosen.get_column(counts).to_numpy(), _DEPTH))
    total = frame.get_column(a.part(_TOTAL)).to_numpy()
    # For records every count is known.
    estimates = chosen.get_column(counts).to_numpy() if raw else sketch.counts(cells)
    heavy = estimates >= _share(a) * total[chosen.get_column(ROW).to_numpy()]
    candidates = chosen.filter(heavy).with_columns_seq(pl.lit(0, pl.Int64).alias(counts))
    kept = pl.concat([flat.filter(~many[rows]), candidates]).sort(ROW)
    return regrouped(frame, kept).with_columns_seq(sketch.columns(a, len(frame)))


@dataclass(frozen=True)
class _Sketch:
    """The cells of all groups: the number of the group and of the cell in one key, sorted, and its count."""

    keys: np.ndarray
    weights: np.ndarray

    def added(self, keys: np.ndarray, weights: np.ndarray) -> _Sketch:
        all_keys, all_weights = np.concatenate([self.keys, keys]), np.concatenate([self.weights, weights])
        cells = pl.DataFrame({"key": all_keys, "weight": all_weights}).filter(pl.col("weight") > 0)
        summed_cells = cells.group_by("key").agg(pl.col("weight").sum()).sort("key")
        return _Sketch(summed_cells.get_column("key").to_numpy(), summed_cells.get_column("weight").to_numpy())

    def counts(self, cells: np.ndarray) -> np.ndarray:
        """The counts of values, given their cells: the smallest of them."""
        if not len(self.keys):
            return np.zeros(cells.shape[1], np.int64)
        places = np.minimum(np.searchsorted(self.keys, cells), len(self.keys) - 1)
        return np.asarray(np.where(self.keys[places] == cells, self.weights[places], 0).min(axis=0))

    def columns(self, a: EvaluatedCall, groups: int) -> list[pl.Series]:
        rows = (self.keys >> _WIDE).astype(np.int64)
        cells = (self.keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        return [gathered(rows, pl.Series(a.part(_CELLS), cells), groups), gathered(rows, pl.Series(a.part(_WEIGHTS), self.weights), groups)]


def _sketch(a: EvaluatedCall, frame: pl.DataFrame) -> _Sketch:
    stored = flattened(frame, [a.part(_CELLS), a.part(_WEIGHTS)])
    keys = stored.get_column(ROW).to_numpy() << _WIDE | stored.get_column(a.part(_CELLS)).to_numpy().astype(np.uint64)
    return _Sketch(keys, stored.get_column(a.part(_WEIGHTS)).to_numpy())


def _cells(values: pl.DataFrame, items: str, cells: int) -> np.ndarray:
    """The cell of each value in each row of its sketch, one array for each row."""
    hashed = hashes(values.get_column(items))
    rows = values.get_column(ROW).to_numpy() << _WIDE
    return np.stack([rows | (np.uint64(depth * cells) + mixed(hashed + np.uint64(depth)) % np.uint64(cells)) for depth in range(_DEPTH)])


def _finish(a: EvaluatedCall) -> pl.Expr:
    names = [a.part(what) for what in (_ITEMS, _COUNTS, _CELLS, _WEIGHTS, _TOTAL)]

    def found(parts: Sequence[pl.Series]) -> pl.Series:
        frame = pl.DataFrame([part.alias(name) for part, name in zip(parts, names, strict=True)])
        flat = flattened(frame, names[:2])
        sketched = _sketch(a, frame).counts(_cells(flat, names[0], width(_share(a))))
        rows = flat.get_column(ROW).to_numpy().astype(np.int64)
        counts = np.where(flat.get_column(names[1]).to_numpy() > 0, flat.get_column(names[1]).to_numpy(), sketched)
        heavy = counts >= _share(a) * frame.get_column(names[4]).to_numpy()[rows]
        pairs = flat.select_seq(ROW, pl.col(names[0]).alias("item"), pl.Series("count", counts)).filter(heavy)
        pairs = pairs.sort(ROW, "count", "item", descending=[False, True, False])
        return regrouped(frame, pairs.select_seq(ROW, pl.struct("item", "count").alias("pairs"))).get_column("pairs").cast(a.kind)

    return pl.map_batches(names, found, return_dtype=a.kind)
