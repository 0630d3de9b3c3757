"""The latest records by key, found in bounded memory and over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from headrace.core.columns.keys import encode_keys, murmur2
from headrace.log.files.layout import BatchLayout

KEY_MEMORY = 64 * 1024 * 1024
"""Distinct keys held at once. While they are merged it takes about four times this; more keys take more passes over the data."""

_HASHES = 1 << 32
_MERGE_ROWS = 100_000

# The number of the first record, and the keys from that record on, in one or more columns.
Keys = tuple[int, list[pa.Array]]


class LatestRecords:
    """One bit for each of many records."""

    def __init__(self, count: int) -> None:
        self._bits = np.zeros(-(-count // 8), dtype=np.uint8)

    def set(self, numbers: np.ndarray) -> None:
        np.bitwise_or.at(self._bits, numbers >> 3, (1 << (numbers & 7)).astype(np.uint8))

    def between(self, first: int, last: int) -> np.ndarray:
        """The marks of records from `first` up to `last`, exclusive."""
        low = first >> 3
        bits = np.unpackbits(self._bits[low : -(-last // 8)], bitorder="little")
        return bits[first - 8 * low : last - 8 * low].astype(bool)


def latest_by_key(scan: Callable[[], Iterable[Keys]], count: int, memory: int = KEY_MEMORY) -> LatestRecords:
    """Mark the last of `count` records of each key, and every record without a key.

    `scan` goes through all keys in the order of the records, the same each time it is called. Where `memory` is too small for all keys,
    each call serves those whose hash is in one range.
    """
    marks = LatestRecords(count)
    ranges = [(0, _HASHES)]
    while ranges:
        low, high = ranges.pop()
        latest = _Latest(low, high, memory)
        if all(latest.add(first, keys) for first, keys in scan()) and latest.merge():
            marks.set(latest.numbers())
        else:
            middle = (low + high) // 2
            ranges += [(low, middle), (middle, high)]
    return marks


def key_columns(layout: BatchLayout, batch: pa.RecordBatch) -> list[pa.Array]:
    """The identity of the keys of a batch, as columns of bytes: one for each key column of the topic."""
    names = layout.topic.key
    if len(names) > 1 and not any(pa.types.is_nested(batch.column(name).type) for name in names):
        return [encode_keys([batch.column(name)]) for name in names]
    keys = layout.keys(batch)
    return [keys if keys is not None else pa.nulls(batch.num_rows, pa.binary())]


class _Latest:
    """The last record of each key whose hash is in a range."""

    def __init__(self, low: int, high: int, memory: int) -> None:
        self._low, self._high = low, high
        # Ranges cannot separate keys with the same hash: these few are kept whatever memory they take.
        self._memory = memory if high - low > 1 else 1 << 62
        self._merged: pa.Table | None = None
        self._pending: list[pa.Table] = []
        self._rows = self._size = 0
        self._unkeyed: list[np.ndarray] = []

    def add(self, first: int, keys: list[pa.Array]) -> bool:
        """Add the keys of the records from number `first` on; False if they exceed the memory."""
        numbers = np.arange(first, first + len(keys[0]), dtype=np.int64)
        table = pa.table({**{str(place): column for place, column in enumerate(keys)}, "number": numbers})
        if len(keys) == 1 and keys[0].null_count:
            absent = keys[0].is_null()
            self._unkeyed.append(numbers[absent.to_numpy(zero_copy_only=False)])
            table = table.filter(keys[0].is_valid())
        if self._high - self._low < _HASHES:
            hashes = _hashes([table.column(place).combine_chunks() for place in range(len(keys))])
            table = table.filter(pa.array((hashes >= self._low) & (hashes < self._high)))
        self._pending.append(table)
        self._rows, self._size = self._rows + table.num_rows, self._size + table.nbytes
        known = self._merged.num_rows if self._merged is not None else 0
        return self.merge() if self._rows >= max(_MERGE_ROWS, known) or self._size >= self._memory else True

    def merge(self) -> bool:
        if self._pending:
            tables = [*([self._merged] if self._merged is not None else []), *self._pending]
            names = tables[0].column_names[:-1]
            merged = pa.concat_tables(tables).group_by(names, use_threads=False).aggregate([("number", "max")])
            self._merged = merged.rename_columns({"number_max": "number"}).select([*names, "number"])
            self._pending, self._rows, self._size = [], 0, 0
        return self._merged is None or self._merged.nbytes <= self._memory

    def numbers(self) -> np.ndarray:
        keyed = [] if self._merged is None else [self._merged.column("number").to_numpy()]
        return np.concatenate([*keyed, *self._unkeyed]) if keyed or self._unkeyed else np.zeros(0, dtype=np.int64)


def _hashes(keys: list[pa.Array]) -> np.ndarray:
    combined = np.zeros(len(keys[0]), dtype=np.uint32)
    for column in keys:
        combined = combined * np.uint32(31) ^ murmur2(column)
    return combined.astype(np.int64)
