"""Where the rows of keyed state are: from the hash of a key to the run and place of its newest row."""

from __future__ import annotations

import numpy as np

# No slot, or no row in it.
ABSENT = -1
_DEAD = -2
# A row is the number of its run, and its place there in the lower bits.
ROW_BITS = 32
ROW_MASK = (1 << ROW_BITS) - 1


class Index:
    """Hash to row number: a large sorted array and a small one for the newest, united when the small one has grown."""

    def __init__(self) -> None:
        self._hashes = [np.empty(0, np.uint64), np.empty(0, np.uint64)]
        self._rows = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self._dead = 0

    def slots(self, hashes: np.ndarray) -> np.ndarray:
        """Where each hash stands: the place in the large array, or behind it in the small one; -1 if nowhere."""
        # In the order of what is stored a search is more than twice as quick: each begins where the one before ended.
        order = np.argsort(hashes)
        wanted = hashes[order]
        found = np.full(len(hashes), ABSENT, dtype=np.int64)
        base = 0
        for stored in self._hashes:
            if len(stored):
                places = np.searchsorted(stored, wanted)
                places[places == len(stored)] = 0
                hit = stored[places] == wanted
                found[order[hit]] = places[hit] + base
            base += len(stored)
        return found

    def rows_at(self, slots: np.ndarray) -> np.ndarray:
        large = len(self._rows[0])
        rows: np.ndarray = self._rows[0].take(slots, mode="clip") if large else np.empty(len(slots), dtype=np.int64)
        rows[slots == ABSENT] = ABSENT
        high = np.flatnonzero(slots >= large)
        rows[high] = self._rows[1][slots[high] - large]
        return rows

    def replace(self, slots: np.ndarray, hashes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Point to new rows: in their slots, or in new ones under their hashes. Gives the rows pointed to before."""
        before = self.rows_at(slots)
        new = slots == ABSENT
        self._set(slots[~new], rows[~new])
        if new.any():
            self._insert(1, hashes[new], rows[new])
            if len(self._hashes[1]) > max(4096, len(self._hashes[0]) // 8):
                self._flatten()
        return before

    def move(self, hashes: np.ndarray, rows: np.ndarray, others: np.ndarray) -> None:
        """Point from rows that it points to, under keys of these hashes, to others."""
        pending = np.arange(len(hashes))
        while len(pending):
            slots = self.slots(hashes[pending])
            if (slots == ABSENT).any():
                raise LookupError("a row of keyed state is not in the index, though it holds")
            # Of keys that share a hash the row tells which is meant.
            right = self.rows_at(slots) == rows[pending]
            self._set(slots[right], others[pending[right]])
            pending = pending[~right]
            hashes[pending] += np.uint64(1)

    def kill(self, hashes: np.ndarray, rows: np.ndarray) -> None:
        """Forget rows. Their slots stay for a while: keys of the same hash may stand behind them."""
        self.move(hashes, rows, np.full(len(rows), _DEAD, dtype=np.int64))
        self._dead += len(rows)
        if self._dead > max(4096, (len(self._rows[0]) + len(self._rows[1])) // 4):
            self._sweep()

    def _sweep(self) -> None:
        """Let go of dead slots, but for those that a key may stand behind."""
        self._flatten()
        hashes, rows = self._hashes[0], self._rows[0]
        followed = np.append(hashes[1:] == hashes[:-1] + np.uint64(1), True)
        kept = (rows != _DEAD) | followed
        self._hashes[0], self._rows[0] = hashes[kept], rows[kept]
        self._dead = int((self._rows[0] == _DEAD).sum())

    def _flatten(self) -> None:
        self._insert(0, self._hashes[1], self._rows[1])
        self._hashes[1], self._rows[1] = np.empty(0, np.uint64), np.empty(0, np.int64)

    def _set(self, slots: np.ndarray, rows: np.ndarray) -> None:
        large = len(self._rows[0])
        low = slots < large
        self._rows[0][slots[low]] = rows[low]
        self._rows[1][slots[~low] - large] = rows[~low]

    def _insert(self, part: int, hashes: np.ndarray, rows: np.ndarray) -> None:
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order]
        places = np.searchsorted(self._hashes[part], hashes)
        self._hashes[part] = np.insert(self._hashes[part], places, hashes)
        self._rows[part] = np.insert(self._rows[part], places, rows)
