"""Runs of rows in memory that other processes map: written when first needed, and dropped when no query needed them for a while."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable

import polars as pl
import pyarrow as pa

# Seconds after which a run that no query read is dropped.
_KEPT = 60.0


class SharedFile:
    """A frame in a file without a name, closed with the last reference."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.descriptor = _unnamed()
        weakref.finalize(self, os.close, self.descriptor)
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        with open(self.descriptor, "wb", closefd=False) as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)


class SharedRuns:
    """The shared runs of one table, by their numbers."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[SharedFile, float]] = {}
        self._lock = threading.Lock()

    def of(self, serial: int, rows: pl.DataFrame) -> SharedFile:
        """The file of a run."""
        held = self._held.get(serial)
        # Not under the lock, which readers of the table take: a large run takes a second. Two queries at once may write it twice.
        file = SharedFile(rows) if held is None else held[0]
        with self._lock:
            self._held[serial] = file, time.monotonic()
        return file

    def keep(self, serials: Iterable[int]) -> None:
        """Drop removed runs."""
        wanted = set(serials)
        with self._lock:
            self._held = {serial: held for serial, held in self._held.items() if serial in wanted}

    def drop_unread(self) -> None:
        """Drop runs that were not needed lately."""
        before = time.monotonic() - _KEPT
        with self._lock:
            self._held = {serial: held for serial, held in self._held.items() if held[1] >= before}


def _unnamed() -> int:
    """A new file that nobody finds: in memory, where the system has that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rows")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
