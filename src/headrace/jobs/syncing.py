"""Syncing of a checkpoint. Spark syncs none of it, and a system takes half a minute to write it out by itself.

The offset of an epoch is synced before anything of the epoch is written (`spark/source.py`). Its state and its commit need not be: a repair
goes back to an epoch for which these are complete, and repeats later ones. So that there is one not far back, the state of an epoch is
synced now and then, and no epoch waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from headrace.checkpoint.journal import COMMITS, Journal
from headrace.checkpoint.referenced_files import StateFiles
from headrace.core.files.disk import sync_directory, sync_file
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import JobAccounting
from headrace.jobs.start.compaction_hold import Holding

# In seconds, and in epochs: whichever comes first. For an epoch that was synced this long ago Spark still has the offset, since it keeps
# those of a hundred epochs, and its files exist.
EVERY, EPOCHS = 5.0, 32
# A sync may be late: its thread also publishes, and a disk may be slow. The next epoch waits rather than clear away what is to be synced.
FURTHEST = 2 * EPOCHS
# The file with the last synced epoch; its own time is that of the sync.
SYNCED = "synced"


class CheckpointSync:
    """Syncs the state of a running job, and then releases what the job holds of its topics in case it is lost.

    The sums of the accounting are written on the same occasions.
    """

    def __init__(
        self, place: JobDirectory, state: StateFiles, clock: Callable[[], float] = time.monotonic, *, holding: Holding | None = None,
        accounting: JobAccounting | None = None,
    ) -> None:  # fmt: skip
        self._place, self._state, self._clock, self._holding, self._accounting = place, state, clock, holding, accounting
        self._journal = Journal(state.checkpoint)
        self._due = clock()
        self._epoch = 0
        self._synced: set[Path] = set()
        self._syncing = threading.Lock()

    def sync_if_due(self) -> None:
        """Sync if the last one was long ago, by the clock or by epochs."""
        if self._clock() >= self._due or self._place.committed_epoch() - self._epoch >= EPOCHS:
            self.sync()
            self._due = self._clock() + EVERY

    def keep_up(self, epoch: int) -> None:
        """Sync if the last synced epoch is far behind this one, which was committed; the loop of epochs waits for that."""
        if epoch - self._epoch >= FURTHEST:
            with self._syncing:
                # Another thread may have been at it.
                if epoch - self._epoch >= FURTHEST:
                    self._sync()

    def sync(self) -> None:
        """Make the state as of the last finished epoch, and its commit, survive a power cut."""
        with self._syncing:
            self._sync()

    def _sync(self) -> None:
        plan = self._place.committed_plan()
        if plan is None or plan.epoch == self._epoch:
            return
        epoch = plan.epoch
        needed = set(self._state.needed(epoch))
        fresh = needed - self._synced
        for file in fresh:
            sync_file(file)
        for directory in {directory for file in fresh for directory in file.parents if directory.is_relative_to(self._state.checkpoint)}:
            sync_directory(directory)
        self._journal.sync(COMMITS, epoch)
        self._synced, self._epoch = needed, epoch
        (self._place.path / SYNCED).write_text(str(epoch), encoding="ascii")
        if self._holding is not None:
            self._holding.move(plan)
        if self._accounting is not None:
            self._accounting.close(epoch, few=True)

    def finish(self) -> None:
        """Sync all of it, and add up the accounting: the run ends."""
        self.sync()
        if self._accounting is not None:
            self._accounting.close(self._epoch)
