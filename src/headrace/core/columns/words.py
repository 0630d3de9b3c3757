"""Binary values as words of a fixed width, for hashes that are computed over whole columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

# Values hashed at once: this bounds the memory of intermediate results.
_CHUNK = 65_536

Hash = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Hashes some values: gets the word that starts at each byte, where each value starts, and how many bytes it has."""


def hashed(values: pa.Array, word: np.dtype, hash_values: Hash) -> np.ndarray:
    """The hash of each binary value, with null as empty; `word` is the unsigned type of words and of hashes.

    A word that begins in a value may extend past its end: the hash masks the bytes that do not belong to the value.

    >>> first_words = lambda words, starts, lengths: words[starts]
    >>> hashed(pa.array([b"abcd", b"efghi"]), np.dtype("<u4"), first_words).tobytes()
    b'abcdefgh'
    """
    if not len(values):
        return np.zeros(0, word)
    filled = values.cast(pa.large_binary()).fill_null(b"")
    offsets = np.frombuffer(filled.buffers()[1], np.int64)[filled.offset : filled.offset + len(filled) + 1]
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    # A word may start at any byte, and the last one may extend past the end: append one word of zeros, and use a view that moves by one
    # byte.
    padded = np.concatenate([data, np.zeros(word.itemsize, np.uint8)])
    words = np.ndarray(shape=(len(padded) - word.itemsize + 1,), dtype=word, buffer=padded, strides=(1,))
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    chunks = range(0, len(filled), _CHUNK)
    return np.concatenate([hash_values(words, starts[at : at + _CHUNK], lengths[at : at + _CHUNK]) for at in chunks])
