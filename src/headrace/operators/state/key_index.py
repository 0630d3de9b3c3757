"""The index of keyed state: from the hash of a key to the run and place of its newest row."""

from __future__ import annotations

import numpy as np

# No slot, or no row in it.
ABSENT = -1
_DEAD = -2
# A row is the number of its run, and its place there in the lower bits.
ROW_BITS = 32
ROW_MASK = (1 << ROW_BITS) - 1


class _Sorted:
    """Hashes in order, each with its row. The first bits of a hash determine its approximate place."""

    def __init__(self, hashes: np.ndarray, rows: np.ndarray) -> None:
        self.hashes, self.rows = hashes, rows
        # Two to four hashes have the same first bits.
        bits = max(1, len(hashes).bit_length() - 2)
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((hashes >> self._shift).astype(np.int64), minlength=1 << bits)
        self._starts = np.cumsum(counts) - counts

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """The place of each hash, or -1."""
        if len(wanted) == 1:
            return np.array([self._find(wanted[0])], dtype=np.int64)
        found = np.full(len(wanted), ABSENT, dtype=np.int64)
        if not len(self.hashes):
            return found
        pending, places = np.arange(len(wanted)), self._starts[(wanted >> self._shift).astype(np.int64)]
        while len(pending):
            stored = self.hashes.take(places, mode="clip")
            hit = stored == wanted
            found[pending[hit]] = places[hit]
            behind = (stored < wanted) & (places < len(self.hashes))
            pending, places, wanted = pending[behind], places[behind] + 1, wanted[behind]
        return found

    def _find(self, wanted: np.uint64) -> int:
        """The same for one hash: a search of the whole takes several times as long to begin."""
        if not len(self.hashes):
            return ABSENT
        place = int(self._starts[wanted >> self._shift])
        while place < len(self.hashes) and self.hashes[place] < wanted:
            place += 1
        return place if place < len(self.hashes) and self.hashes[place] == wanted else ABSENT

    def with_more(self, hashes: np.ndarray, rows: np.ndarray) -> _Sorted:
        order = np.argsort(hashes, kind="stable")
        places = np.searchsorted(self.hashes, hashes[order])
        return _Sorted(np.insert(self.hashes, places, hashes[order]), np.insert(self.rows, places, rows[order]))


def _nothing() -> _Sorted:
    return _Sorted(np.empty(0, np.uint64), np.empty(0, np.int64))


class Index:
    """Hash to row number: a large part and a small one for the newest, merged when the small one has grown."""

    def __init__(self) -> None:
        self._large, self._small = _nothing(), _nothing()
        self._dead = 0

    def slots(self, hashes: np.ndarray) -> np.ndarray:
        """The place of each hash: in the large part, or after it in the small one; -1 if there is none."""
        found = self._large.find(hashes)
        if len(self._small.hashes):
            missing = np.flatnonzero(found == ABSENT)
            places = self._small.find(hashes[missing])
            found[missing] = np.where(places == ABSENT, ABSENT, places + len(self._large.hashes))
        return found

    def rows_at(self, slots: np.ndarray) -> np.ndarray:
        large = len(self._large.rows)
        rows: np.ndarray = self._large.rows.take(slots, mode="clip") if large else np.empty(len(slots), dtype=np.int64)
        rows[slots == ABSENT] = ABSENT
        high = np.flatnonzero(slots >= large)
        rows[high] = self._small.rows[slots[high] - large]
        return rows

    def are_left(self, slots: np.ndarray) -> np.ndarray:
        """Whether each slot is there, and its key is gone."""
        return np.asarray(self.rows_at(slots) == _DEAD)

    def are_free(self, slots: np.ndarray) -> np.ndarray:
        """Whether each slot has no key."""
        return np.asarray(self.rows_at(slots) < 0)

    def replace(self, slots: np.ndarray, hashes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Point to new rows: in their slots, or in new ones under their hashes. Returns the rows pointed to before."""
        before = self.rows_at(slots)
        self._dead -= int((before == _DEAD).sum())
        new = slots == ABSENT
        self._set(slots[~new], rows[~new])
        if new.any():
            self._small = self._small.with_more(hashes[new], rows[new])
            if len(self._small.hashes) > max(4096, len(self._large.hashes) // 8):
                self._flatten()
        return before

    def move(self, hashes: np.ndarray, rows: np.ndarray, others: np.ndarray) -> None:
        """Point from rows that it points to, under keys of these hashes, to others."""
        pending = np.arange(len(hashes))
        while len(pending):
            slots = self.slots(hashes[pending])
            if (slots == ABSENT).any():
                raise LookupError("a row of keyed state is not in the index, although it is live")
            # For keys that share a hash, the row identifies the key.
            right = self.rows_at(slots) == rows[pending]
            self._set(slots[right], others[pending[right]])
            pending = pending[~right]
            hashes[pending] += np.uint64(1)

    def kill(self, hashes: np.ndarray, rows: np.ndarray) -> None:
        """Remove rows. Their slots stay for a while: keys of the same hash may be behind them."""
        self.move(hashes, rows, np.full(len(rows), _DEAD, dtype=np.int64))
        self._dead += len(rows)
        if self._dead > max(4096, (len(self._large.rows) + len(self._small.rows)) // 4):
            self._sweep()

    def _sweep(self) -> None:
        """Release dead slots, except those that a key may be behind."""
        self._flatten()
        hashes, rows = self._large.hashes, self._large.rows
        followed = np.append(hashes[1:] == hashes[:-1] + np.uint64(1), True)
        kept = (rows != _DEAD) | followed
        self._large = _Sorted(hashes[kept], rows[kept])
        self._dead = int((self._large.rows == _DEAD).sum())

    def _flatten(self) -> None:
        self._large, self._small = self._large.with_more(self._small.hashes, self._small.rows), _nothing()

    def _set(self, slots: np.ndarray, rows: np.ndarray) -> None:
        large = len(self._large.rows)
        low = slots < large
        self._large.rows[slots[low]] = rows[low]
        self._small.rows[slots[~low] - large] = rows[~low]
