"""What a power cut leaves of a checkpoint. Spark syncs none of it, and a system takes half a minute to write it out by itself.

The offset of an epoch is synced before anything of the epoch is written (`spark/source.py`). Its state, and that it is done, need not be:
a repair goes back to an epoch of which these are whole, and does again what came after it. So that there is one not far back, the state of
an epoch is synced now and then, and no epoch waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from headrace.jobs.directory import JobDirectory
from headrace.jobs.state_files import StateFiles
from headrace.log.disk import sync_directory, sync_file
from headrace.spark.journal import COMMITS, Journal

# In seconds. Of an epoch that was synced so long ago Spark still has the offset: it keeps those of a hundred.
EVERY = 5.0


class Lasting:
    """Syncs the state of a job that runs."""

    def __init__(self, place: JobDirectory, state: StateFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self._place, self._state, self._clock = place, state, clock
        self._journal = Journal(state.checkpoint)
        self._due = clock()
        self._epoch = 0
        self._synced: set[Path] = set()

    def sync_if_due(self) -> None:
        """Sync if that was long ago."""
        if self._clock() >= self._due:
            self.sync()
            self._due = self._clock() + EVERY

    def sync(self) -> None:
        """Let the state as of the last epoch that is done, and that it is done, outlast a power cut."""
        epoch = self._place.committed_epoch()
        if epoch == self._epoch:
            return
        needed = set(self._state.needed(epoch))
        fresh = needed - self._synced
        for file in fresh:
            sync_file(file)
        for directory in {directory for file in fresh for directory in file.parents if directory.is_relative_to(self._state.checkpoint)}:
            sync_directory(directory)
        self._journal.sync(COMMITS, epoch)
        self._synced, self._epoch = needed, epoch
