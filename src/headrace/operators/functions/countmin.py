"""heavy_hitters: the values that make up at least a share of all, found with a Count-Min sketch a group.

A sketch never counts too little, and a value with a share of the whole has that share of at least one part of it: so
candidates kept in every part are enough, and no heavy value is missed. Cells that are zero are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from headrace.operators.aggregate import Accumulators, Aggregate
from headrace.operators.function import Function
from headrace.operators.functions.hashing import hashes, mixed
from headrace.operators.functions.lists import ROW, flattened, gathered, regrouped

# Each value has a cell in so many rows of the sketch; a count is off by more than its error in e**-5 of cases.
_DEPTH = 5
# A count is too large by at most a tenth of the share that is asked for.
_FINER = 10
_ITEMS, _CELLS, _COUNTS, _COUNT = "items", "cells", "counts", "count"
_WIDE = np.uint64(32)


def heavy_hitters() -> Function:
    return Function(_partial, _merge, _finish, condense=_condensed)


def width(share: float) -> int:
    """Cells a row.

    >>> width(0.01)
    2719
    """
    return math.ceil(math.e * _FINER / share)


def _share(a: Aggregate) -> float:
    (share,) = a.options
    assert isinstance(share, float)
    return share


def _partial(a: Aggregate) -> Accumulators:
    items = a.column(0).drop_nulls()
    return {a.part(_ITEMS): items, a.part(_COUNT): items.len().cast(pl.Int64)}


def _merge(a: Aggregate) -> Accumulators:
    lists = {a.part(what): pl.col(a.part(what)).explode(empty_as_null=False) for what in (_ITEMS, _CELLS, _COUNTS)}
    return lists | {a.part(_COUNT): pl.col(a.part(_COUNT)).sum()}


def _condensed(a: Aggregate, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    items = a.part(_ITEMS)
    candidates = flattened(frame, [items]).group_by(ROW, items, maintain_order=True).len("_times").sort(ROW, items)
    cells = _cells(candidates, items, width(_share(a)))
    if raw:
        keys, weights = cells.ravel(), np.tile(candidates.get_column("_times").to_numpy().astype(np.int64), _DEPTH)
    else:
        stored = flattened(frame, [a.part(_CELLS), a.part(_COUNTS)])
        keys = stored.get_column(ROW).to_numpy() << _WIDE | stored.get_column(a.part(_CELLS)).to_numpy().astype(np.uint64)
        weights = stored.get_column(a.part(_COUNTS)).to_numpy()
    keys, counts = _summed(keys, weights)
    rows = (keys >> _WIDE).astype(np.int64)
    frame = frame.with_columns(
        gathered(rows, pl.Series(a.part(_CELLS), (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)), len(frame)),
        gathered(rows, pl.Series(a.part(_COUNTS), counts), len(frame)),
    )
    found = _heavy(a, frame, candidates, _looked_up(cells, keys, counts))
    return regrouped(frame, found.select(ROW, items))


def _cells(candidates: pl.DataFrame, items: str, cells: int) -> np.ndarray:
    """The cell of each value in each row of its sketch, one array a row."""
    hashed = hashes(candidates.get_column(items))
    rows = candidates.get_column(ROW).to_numpy() << _WIDE
    return np.stack([rows | (np.uint64(depth * cells) + mixed(hashed + np.uint64(depth)) % np.uint64(cells)) for depth in range(_DEPTH)])


def _summed(keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[starts], np.add.reduceat(weights[order], starts) if len(starts) else weights[order]


def _looked_up(cells: np.ndarray, keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The smallest of its cells: what a value is counted as."""
    if not len(keys):
        return np.zeros(cells.shape[1], np.int64)
    return np.asarray(counts[np.searchsorted(keys, cells)].min(axis=0))


def _heavy(a: Aggregate, frame: pl.DataFrame, candidates: pl.DataFrame, estimates: np.ndarray) -> pl.DataFrame:
    total = frame.get_column(a.part(_COUNT)).to_numpy()
    rows = candidates.get_column(ROW).to_numpy().astype(np.int64)
    counted = candidates.with_columns(pl.Series("_estimate", estimates))
    return counted.filter(pl.Series(estimates >= _share(a) * total[rows]))


def _finish(a: Aggregate) -> pl.Expr:
    def found(parts: Sequence[pl.Series]) -> pl.Series:
        names = (_ITEMS, _CELLS, _COUNTS, _COUNT)
        frame = pl.DataFrame([part.alias(a.part(name)) for part, name in zip(parts, names, strict=True)])
        items = a.part(_ITEMS)
        candidates = flattened(frame, [items])
        stored = flattened(frame, [a.part(_CELLS), a.part(_COUNTS)])
        keys = stored.get_column(ROW).to_numpy() << _WIDE | stored.get_column(a.part(_CELLS)).to_numpy().astype(np.uint64)
        cells = _cells(candidates, items, width(_share(a)))
        estimates = _looked_up(cells, keys, stored.get_column(a.part(_COUNTS)).to_numpy())
        heavy = _heavy(a, frame, candidates, estimates).sort(ROW, "_estimate", items, descending=[False, True, False])
        pairs = heavy.select(ROW, pl.struct(pl.col(items).alias("item"), pl.col("_estimate").alias("count")).alias("pairs"))
        return regrouped(frame, pairs).get_column("pairs").cast(a.kind)

    return pl.map_batches([a.part(name) for name in (_ITEMS, _CELLS, _COUNTS, _COUNT)], found, return_dtype=a.kind)
