"""Indexes on some columns of a key, such as the user or the window: built when first needed, one for each run of rows.

A run never changes, so its index is built once. Small runs are scanned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import polars as pl

_SMALL = 50_000
_SEED = 23


class PrefixIndexes:
    """Indexes by the number of a run and the columns."""

    def __init__(self) -> None:
        self._built: dict[tuple[int, tuple[str, ...]], tuple[np.ndarray, np.ndarray]] = {}
        self._lock = threading.Lock()

    def rows(self, serial: int, run: pl.DataFrame, values: pl.DataFrame) -> np.ndarray | None:
        """The rows of a run whose columns have the hash of these values; None if the run is to be scanned."""
        if run.height < _SMALL:
            return None
        columns = tuple(values.columns)
        with self._lock:
            built = self._built.get((serial, columns))
            if built is None:
                hashes = run.select(columns).hash_rows(seed=_SEED).to_numpy()
                order = np.argsort(hashes, kind="stable")
                built = self._built[serial, columns] = (hashes[order], order)
        hashes, order = built
        wanted = values.hash_rows(seed=_SEED).item()
        low, high = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        return np.sort(order[low:high])

    def keep(self, serials: Iterable[int]) -> None:
        """Drop the indexes of removed runs."""
        wanted = set(serials)
        with self._lock:
            for key in [key for key in self._built if key[0] not in wanted]:
                del self._built[key]
