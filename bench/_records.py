"""The records of the log benchmarks: 100 bytes each, the same for every side, and what proves that they came back."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SIZE = 100
KEY_SIZE = 8
_KEYS = 10_000
_SEED = 20260101
_STAMP = struct.Struct("<qq")


@dataclass(frozen=True)
class Records:
    """`count` records; with keys, 8 of the 100 bytes are the key. Each value starts with its number, so order can be checked."""

    count: int
    keyed: bool

    def values(self) -> np.ndarray:
        """One row of bytes a record."""
        random = np.random.default_rng(_SEED)
        rows = random.integers(0, 256, (self.count, SIZE - KEY_SIZE if self.keyed else SIZE), dtype=np.uint8)
        rows[:, :8] = np.arange(self.count, dtype="<i8").view(np.uint8).reshape(-1, 8)
        return rows

    def keys(self) -> np.ndarray:
        numbers = np.random.default_rng(_SEED + 1).integers(0, _KEYS, self.count, dtype=np.int64)
        return numbers.astype(">i8").view(np.uint8).reshape(-1, KEY_SIZE)

    def value_list(self) -> list[bytes]:
        return as_list(self.values())

    def key_list(self) -> list[bytes]:
        return as_list(self.keys())

    def tables(self, rows_each: int) -> list[tuple[pa.Table, pa.Array | None]]:
        """Tables of `rows_each` with the column `value`, each with its keys if there are any."""
        values, keys = as_column(self.values()), as_column(self.keys()) if self.keyed else None
        starts = range(0, self.count, rows_each)
        return [(pa.table({"value": values.slice(at, rows_each)}), keys.slice(at, rows_each) if keys else None) for at in starts]


def as_list(rows: np.ndarray) -> list[bytes]:
    joined, size = rows.tobytes(), rows.shape[1]
    return [joined[start : start + size] for start in range(0, len(joined), size)]


def as_column(rows: np.ndarray) -> pa.Array:
    count, size = rows.shape
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def column_bytes(column: pa.ChunkedArray) -> list[np.ndarray]:
    """The bytes of a binary column, chunk by chunk, without a copy."""
    found = []
    for chunk in column.chunks:
        wide = chunk.type in (pa.large_binary(), pa.large_string())
        _, offsets, content = chunk.buffers()
        bounds = np.frombuffer(offsets, np.int64 if wide else np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if len(chunk):
            found.append(np.frombuffer(content, np.uint8)[int(bounds[0]) : int(bounds[-1])])
    return found


def checksum(content: np.ndarray) -> int:
    """Touch every byte: the sum of its 4-byte words, the same in whatever order records of 100 bytes come."""
    return int(content.view(np.uint32).sum(dtype=np.uint64))


def stamped(number: int, due_at: int) -> bytes:
    """A 100-byte record that carries when it was due, on the clock that all processes of this machine share."""
    return _STAMP.pack(number, due_at).ljust(SIZE, b"-")


def read_stamp(value: bytes) -> tuple[int, int]:
    number, due_at = _STAMP.unpack_from(value)
    return number, due_at


@dataclass(frozen=True)
class Contents:
    """What a topic holds: per partition the number of records and a hash that ignores their order, and whether they were in order."""

    partitions: dict[int, tuple[int, int]]
    ordered: bool

    @property
    def total(self) -> tuple[int, int]:
        counts, hashes = zip(*self.partitions.values(), strict=True)
        return sum(counts), sum(hashes) % 2**64


def contents(rows: np.ndarray, partitions: np.ndarray) -> Contents:
    """`rows` as they were read, each partition's in the order of its offsets."""
    found, ordered = {}, True
    numbers = np.ascontiguousarray(rows[:, :8]).view("<i8").ravel()
    hashes = _row_hashes(rows)
    for partition in np.unique(partitions).tolist():
        chosen = partitions == partition
        found[partition] = (int(chosen.sum()), int(hashes[chosen].sum(dtype=np.uint64)))
        ordered = ordered and bool((np.diff(numbers[chosen]) > 0).all())
    return Contents(found, ordered)


def _row_hashes(rows: np.ndarray) -> np.ndarray:
    words = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(_SEED + 2).integers(1, 2**63, words.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed: np.ndarray = (words * factors).sum(axis=1, dtype=np.uint64)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    return mixed
