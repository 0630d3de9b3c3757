"""Random draws by number: what an event has depends on the seed and its number, not on the events that are made with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_FIRST_LETTER, _LAST_LETTER = ord("a"), ord("z")
_POOL = 1 << 20
_SPREAD = 0.2
# Texts put together at once: each letter takes eight bytes meanwhile.
_AT_ONCE = 50_000


class Draws:
    """One draw after another for each of some numbers."""

    def __init__(self, seed: int, numbers: np.ndarray) -> None:
        self._numbers = numbers.astype(np.uint64)
        self._seeds = np.random.default_rng(seed)
        self._pool = np.random.default_rng([seed, 1]).integers(_FIRST_LETTER, _LAST_LETTER + 1, _POOL, dtype=np.uint8)

    def uniform(self) -> np.ndarray:
        """From 0 to below 1."""
        return (self._bits() >> np.uint64(11)).astype(np.float64) / 2**53

    def below(self, bound: int | np.ndarray) -> np.ndarray:
        """Whole numbers from 0 on."""
        return (self.uniform() * bound).astype(np.int64)

    def texts(self, length: int) -> pa.Array:
        """Small letters, up to a fifth fewer or more than `length`."""
        least, most = round(length * (1 - _SPREAD)), round(length * (1 + _SPREAD))
        lengths, starts = least + self.below(most - least + 1), self.below(_POOL - most)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        letters = np.empty(int(offsets[-1]), np.uint8)
        for first in range(0, len(lengths), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            begin, end = offsets[first], offsets[min(first + _AT_ONCE, len(lengths))]
            places = np.repeat(starts[some] - offsets[:-1][some], lengths[some]) + np.arange(begin, end)
            letters[begin:end] = self._pool[places]
        return pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(letters)])

    def names(self, names: list[str]) -> pa.Array:
        """One of some names."""
        return chosen(names, self.below(len(names)))

    def _bits(self) -> np.ndarray:
        """Sixty-four bits of each number, others in every draw: the mixing of SplitMix64."""
        salt = self._seeds.integers(0, 2**64, dtype=np.uint64)
        mixed = self._numbers * np.uint64(0x9E3779B97F4A7C15) + salt
        for shift, factor in zip((30, 27), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB), strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return mixed ^ (mixed >> np.uint64(31))


def chosen(names: list[str], numbers: np.ndarray) -> pa.Array:
    """The name of each number."""
    return pa.array(names, pa.string()).take(pa.array(numbers))
