"""Cursors over many records at once: each reads the same kind of value, all over a single run of bytes.

Whatever the bytes are, nothing is read past the end of a record; a record that would need it is marked as bad, and the others continue.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_LONGEST = 10  # bytes of a 64-bit number in groups of seven bits


class RecordCursors:
    """The position reached in each record, and why some records are bad. Methods take the numbers of records, ascending."""

    def __init__(self, records: Sequence[bytes]) -> None:
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        self._ends = np.cumsum(lengths)
        self._places = self._ends - lengths
        # Padding after the last record, so that every read is in bounds.
        self._data = np.frombuffer(b"".join(records) + bytes(16), dtype=np.uint8)
        self._bad: dict[int, str] = {}
        self.sound = np.ones(len(records), dtype=bool)

    def problems(self) -> dict[int, str]:
        """The problem of each bad record, including those that were not read to their end."""
        rest = np.flatnonzero(self.sound & (self._places != self._ends))
        self._mark(rest, "bytes are left over after its last field")
        return self._bad

    def refuse(self, rows: np.ndarray, wrong: np.ndarray, reason: str) -> None:
        """Mark as bad those of some records for which `wrong` is true."""
        if wrong.any():
            self._mark(rows[wrong], reason)

    def longs(self, rows: np.ndarray) -> np.ndarray:
        """A zigzag-encoded number of each record."""
        values = np.zeros(len(rows), dtype=np.uint64)
        left = np.arange(len(rows))
        for group in range(_LONGEST):
            mine = rows[left]
            over = self._places[mine] >= self._ends[mine]
            if over.any():
                self._mark(mine[over], "it ends inside a number")
                left, mine = left[~over], mine[~over]
            found = self._data[self._places[mine]].astype(np.uint64)
            values[left] |= (found & np.uint64(0x7F)) << np.uint64(7 * group)
            self._places[mine] += 1
            left = left[found >= 0x80]
            if not len(left):
                break
        else:
            self._mark(rows[left], "a number has more than 64 bits")
        signs = ~(values & np.uint64(1)) + np.uint64(1)
        return np.asarray((values >> np.uint64(1)) ^ signs).view(np.int64)

    def fixed(self, rows: np.ndarray, size: int) -> np.ndarray:
        """A fixed number of bytes of each record, as rows of bytes."""
        self.refuse(rows, self._ends[rows] - self._places[rows] < size, "it ends inside a value")
        found = self._data[np.minimum(self._places[rows][:, None] + np.arange(size), len(self._data) - 1)]
        self._places[rows] += np.where(self.sound[rows], size, 0)
        return np.asarray(found)

    def blobs(self, rows: np.ndarray) -> pa.Array:
        """Bytes of each record, with their length in front."""
        lengths = self.longs(rows)
        self.refuse(rows, (lengths < 0) | (lengths > self._ends[rows] - self._places[rows]), "a length extends past its end")
        lengths = np.where(self.sound[rows], lengths, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        begins = self._places[rows]
        taken = self._data[np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])]
        self._places[rows] += lengths
        return pa.Array.from_buffers(pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(taken)])

    def texts(self, rows: np.ndarray) -> pa.Array:
        """Text of each record, with its length in front."""
        found = self.blobs(rows)
        try:
            return found.cast(pa.large_string())
        except pa.ArrowInvalid:
            good = np.array([_utf8(value) for value in found.to_pylist()], dtype=bool)
            self.refuse(rows, ~good, "text is not UTF-8")
            return pa.array([value if fine else b"" for value, fine in zip(found.to_pylist(), good, strict=True)], pa.large_string())

    def left(self, rows: np.ndarray) -> np.ndarray:
        """The number of bytes left in each record."""
        return np.asarray(self._ends[rows] - self._places[rows])

    def _mark(self, rows: np.ndarray, reason: str) -> None:
        for row in rows[self.sound[rows]].tolist():
            self._bad[row] = reason
        self.sound[rows] = False
        self._places[rows] = self._ends[rows]


def _utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
