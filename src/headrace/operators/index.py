"""Where the rows of keyed state are: from the hash of a key to the run and place of its newest row."""

from __future__ import annotations

from collections.abc import Mapping

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
        rows = np.full(len(slots), ABSENT, dtype=np.int64)
        low, high = (slots != ABSENT) & (slots < large), slots >= large
        rows[low] = self._rows[0][slots[low]]
        rows[high] = self._rows[1][slots[high] - large]
        return rows

    def replace(self, slots: np.ndarray, hashes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Point to new rows: in their slots, or in new ones under their hashes. Gives the rows pointed to before."""
        before = self.rows_at(slots)
        large = len(self._rows[0])
        low, high, new = (slots != ABSENT) & (slots < large), slots >= large, slots == ABSENT
        self._rows[0][slots[low]] = rows[low]
        self._rows[1][slots[high] - large] = rows[high]
        if new.any():
            self._insert(1, hashes[new], rows[new])
            if len(self._hashes[1]) > max(4096, len(self._hashes[0]) // 8):
                self._insert(0, self._hashes[1], self._rows[1])
                self._hashes[1], self._rows[1] = np.empty(0, np.uint64), np.empty(0, np.int64)
        return before

    def kill(self, slots: np.ndarray) -> None:
        """Forget the rows in these slots. The slots stay: keys of the same hash may stand behind them."""
        large = len(self._rows[0])
        self._rows[0][slots[slots < large]] = _DEAD
        self._rows[1][slots[slots >= large] - large] = _DEAD
        self._dead += len(slots)

    def move(self, chosen: Mapping[int, np.ndarray], serial: int) -> None:
        """Point from rows of runs, those that are chosen, to their places in the run of another number that has just these.

        Looks at every slot, a nanosecond or two each: to find so many keys again would take far longer. Rows that are not chosen are dead.
        """
        first = min(chosen)
        offsets, ranks, rows, kept = np.full(max(chosen) - first + 1, ABSENT, np.int64), [], 0, 0
        for number, mask in chosen.items():
            offsets[number - first] = rows
            ranks.append(np.where(mask, np.cumsum(mask) - 1 + kept | (serial << ROW_BITS), _DEAD))
            rows, kept = rows + len(mask), kept + int(mask.sum())
        places = np.concatenate(ranks)
        for pointers in self._rows:
            numbers = (pointers >> ROW_BITS) - first
            known = np.flatnonzero((pointers >= 0) & (numbers >= 0) & (numbers < len(offsets)))
            known = known[offsets[numbers[known]] != ABSENT]
            moved = places[offsets[numbers[known]] + (pointers[known] & ROW_MASK)]
            pointers[known] = moved
            self._dead += int((moved == _DEAD).sum())

    def mostly_dead(self) -> bool:
        return self._dead > max(4096, (len(self._rows[0]) + len(self._rows[1])) // 4)

    def _insert(self, part: int, hashes: np.ndarray, rows: np.ndarray) -> None:
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order]
        places = np.searchsorted(self._hashes[part], hashes)
        self._hashes[part] = np.insert(self._hashes[part], places, hashes)
        self._rows[part] = np.insert(self._rows[part], places, rows)
