"""A 64-bit hash of any column that is the same in every version and on every machine: sketches in a job's state depend on it."""

from __future__ import annotations

import numpy as np
import polars as pl

from headrace.core.columns.words import hashed
from headrace.operators.expressions.numbers.decimals import number, unscaled
from headrace.schema.legible import as_json

_WORD = np.dtype("<u8")
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LIMB = 2**64


def hashes(values: pl.Series) -> np.ndarray:
    """One hash for each value. The hash of null has no meaning.

    >>> hashes(pl.Series([1, 2])).tolist() == hashes(pl.Series([1, 2], dtype=pl.Int32)).tolist()
    True
    """
    kind = values.dtype
    if kind in (pl.String, pl.Binary):
        return _bytes(values.cast(pl.Binary))
    if kind.is_nested():
        return _bytes(as_json(values.alias("value").to_frame()).cast(pl.Binary))
    if isinstance(kind, pl.Decimal):
        digits = values.to_frame("digits").select_seq(unscaled(pl.col("digits")))
        high = pl.col("digits").floordiv(number(_LIMB))
        limbs = digits.select_seq(high.cast(pl.Int64).alias("high"), (pl.col("digits") - high * number(_LIMB)).cast(pl.UInt64).alias("low"))
        return mixed(mixed(_words(limbs["high"])) ^ _words(limbs["low"]))
    if kind.is_float():
        # The two zeros are one value, and so is every NaN.
        plain = values.cast(pl.Float64).fill_nan(float("nan")).fill_null(0.0).to_numpy()
        return mixed(np.where(plain == 0.0, 0.0, plain).view(np.uint64))
    return mixed(_words(values.to_physical().cast(pl.Int64)))


def mixed(words: np.ndarray) -> np.ndarray:
    """Words whose every bit depends on every bit of the input (the finalizer of SplitMix64)."""
    words = words + _STEP
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return np.asarray(words ^ (words >> np.uint64(31)))


def _words(values: pl.Series) -> np.ndarray:
    return values.fill_null(0).to_numpy().view(np.uint64)


def _bytes(values: pl.Series) -> np.ndarray:
    return hashed(values.to_arrow(), _WORD, _mixed_words)


def _mixed_words(words: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    whole, rest = lengths // 8, (lengths % 8).astype(np.uint64)
    found = mixed(lengths.astype(np.uint64))
    for place in range(int(whole.max())):
        # Only values of at least this length take part.
        longer = np.flatnonzero(whole > place)
        found[longer] = mixed(found[longer] ^ words[starts[longer] + 8 * place])
    tailed = np.flatnonzero(rest)
    masks = (np.uint64(1) << (np.uint64(8) * rest[tailed])) - np.uint64(1)
    found[tailed] = mixed(found[tailed] ^ (words[starts[tailed] + 8 * whole[tailed]] & masks))
    return found
