"""approx_count_distinct: a HyperLogLog sketch for each group, stored as the registers that are not empty.

A small group costs a few bytes, and no group more than 4 bytes for each register. The estimate is Ertl's, which needs no correction tables
and is unbiased from zero on (arXiv:1702.01284, algorithm 6).
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from headrace.operators.aggregates.call import Accumulators, EvaluatedCall
from headrace.operators.aggregates.function import Function
from headrace.operators.aggregates.functions.hashing import hashes
from headrace.operators.aggregates.functions.lists import ROW, flattened, gathered

# A register has the place of the first one among this many bits of a hash, or one more if there is none.
_BITS = 48
_RANK = np.uint64(6)


def approx_count_distinct() -> Function:
    return Function(
        lambda a: {a.part("registers"): pl.col(a.part("code")).drop_nulls()},
        lambda a: {a.part("registers"): pl.col(a.part("registers")).explode(empty_as_null=False)},
        lambda a: pl.col(a.part("registers")).map_batches(lambda lists: _estimates(lists, precision(_error(a))), return_dtype=pl.Int64()),
        prepare=_codes,
        condense=_highest,
    )


def precision(error: float) -> int:
    """The number of bits that choose the register, for a standard error of at most `error`; the same as Spark's.

    >>> precision(0.05), precision(0.01)
    (9, 14)
    """
    return math.ceil(2 * math.log2(1.106 / error))


def _error(a: EvaluatedCall) -> float:
    (error,) = a.options
    assert isinstance(error, float)
    return error


def _codes(a: EvaluatedCall) -> Accumulators:
    """The register of each record and its value, in one number; null where the record does not count."""
    value = pl.col(a.inputs[0])
    bits = precision(_error(a))

    def code(values: pl.Series) -> pl.Series:
        hashed = hashes(values)
        tail = hashed & np.uint64((1 << _BITS) - 1)
        # The exponent of a float is the place of its highest one.
        rank = (_BITS + 1 - np.frexp(tail.astype(np.float64))[1]).astype(np.uint64)
        return pl.Series(((hashed >> np.uint64(64 - bits)) << _RANK | rank).astype(np.uint32))

    counts = [value.is_not_null(), *a.passing]
    return {a.part("code"): pl.when(*counts).then(value.map_batches(code, return_dtype=pl.UInt32()))}


def _highest(a: EvaluatedCall, frame: pl.DataFrame, raw: bool) -> pl.DataFrame:
    """Only the highest value of each register."""
    name = a.part("registers")
    flat = flattened(frame, [name])
    width = np.uint64(precision(_error(a))) + _RANK
    codes = np.sort(flat.get_column(ROW).to_numpy() << width | flat.get_column(name).to_numpy().astype(np.uint64))
    registers = codes >> _RANK
    last = np.append(registers[1:] != registers[:-1], True)[: len(codes)]
    kept = codes[last]
    values = pl.Series(name, (kept & np.uint64((1 << int(width)) - 1)).astype(np.uint32))
    return frame.with_columns_seq(gathered((kept >> width).astype(np.int64), values, len(frame)))


def _estimates(lists: pl.Series, bits: int) -> pl.Series:
    flat = flattened(lists.alias("codes").to_frame(), ["codes"])
    ranks = (flat.get_column("codes").to_numpy() & np.uint32((1 << int(_RANK)) - 1)).astype(np.int64)
    places = flat.get_column(ROW).to_numpy().astype(np.int64) * (_BITS + 2) + ranks
    counts = np.bincount(places, minlength=len(lists) * (_BITS + 2)).reshape(len(lists), _BITS + 2).astype(np.float64)
    size = float(1 << bits)
    counts[:, 0] = size - counts.sum(axis=1)
    total = size * _tau(1.0 - counts[:, _BITS + 1] / size)
    for rank in range(_BITS, 0, -1):
        total = 0.5 * (total + counts[:, rank])
    with np.errstate(divide="ignore"):
        found = size * size / (2.0 * math.log(2.0)) / (total + size * _sigma(counts[:, 0] / size))
    return pl.Series(np.rint(found).astype(np.int64))


def _sigma(share: np.ndarray) -> np.ndarray:
    """share + share**2 * 1 + share**4 * 2 + share**8 * 4 ..., infinite where every register is empty."""
    power, weight, total = share.copy(), 1.0, share.copy()
    for _ in range(64):
        power = power * power
        grown = total + power * weight
        weight *= 2.0
        if np.array_equal(grown, total):
            break
        total = grown
    return np.where(share >= 1.0, np.inf, total)


def _tau(share: np.ndarray) -> np.ndarray:
    """(1 - share - (1 - share**(1/2))**2 / 2 - (1 - share**(1/4))**2 / 4 ...) / 3."""
    root, weight, total = share.copy(), 1.0, 1.0 - share
    for _ in range(64):
        root = np.sqrt(root)
        weight *= 0.5
        grown = total - (1.0 - root) ** 2 * weight
        if np.array_equal(grown, total):
            break
        total = grown
    return np.where((share == 0.0) | (share == 1.0), 0.0, total / 3.0)
