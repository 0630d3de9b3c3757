"""Numbers of rows, by which the search of a key finds its first one again."""

from __future__ import annotations

import numpy as np

from headrace.operators.contract import Exported, Size
from headrace.operators.state.store import Store

# The number of a row in its shard; of a key, that of the first row that is kept for it.
SERIAL, KEEP = "_match serial", "_match keep"


class Serials:
    """The numbers that rows of a shard are given, each higher than all before it; those of one key are compared."""

    def __init__(self) -> None:
        self.next = 0

    @property
    def size(self) -> Size:
        return Size()

    def given(self, serials: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """The numbers of rows, new ones for those that are fresh."""
        count = int(fresh.sum())
        found = np.where(fresh, 0, serials).astype(np.int64)
        found[fresh] = np.arange(self.next, self.next + count)
        self.next += count
        return found

    def manifest(self) -> str:
        return str(self.next)

    def restore(self, manifest: str | None, _store: Store) -> None:
        self.next = int(manifest or 0)

    def export(self) -> Exported:
        """Nothing but what rows and keys have."""
        return Exported()

    def absorb(self, moved: Exported, _store: Store) -> None:
        """Go on behind every number that is there."""
        seen = [frame.get_column(name).max() for frame in moved.frames.values() for name in (SERIAL, KEEP) if name in frame.columns]
        self.next = 1 + max((number for number in seen if isinstance(number, int)), default=-1)
