"""Outputs whose tasks stage an epoch, and whose driver commits it at once."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.connectors.staging import REMOVED, Staging, forget_recorded
from headrace.core import failpoints

Epochs: TypeAlias = Iterator[tuple[int, pa.Table]]
"""Numbers of epochs with the rows of all tasks, in their order."""

# Waiting epochs are published early when they make a large file; one file has no more rows than fit into memory well.
_MUCH, _MOST = 64 << 20, 256 << 20
_ROW = "_headrace_row"


class StagedOutput(ABC):
    """Base class of tables that consist of files. A commit contains the number of its epoch, so that none is made twice."""

    columns: pa.Schema
    key: tuple[str, ...]
    roll: timedelta | None
    """How long epochs wait to become one commit with later ones; None if each is one at once."""

    @property
    @abstractmethod
    def staged_in(self) -> Path:
        """The directory of staged files, which readers of the table ignore."""

    @property
    def waits(self) -> bool:
        """Whether epochs may wait for later ones: then `publish` is also called when there is no new epoch."""
        return self.roll is not None

    @abstractmethod
    def make(self) -> None:
        """Create the table, or check that it accepts the results."""

    @abstractmethod
    def committed(self, job: str, sink: str) -> int:
        """The last committed epoch of a job; -1 if there is none."""

    @abstractmethod
    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        """Commit the rows of all tasks at once; in a table, removed rows are marked in the column `REMOVED`."""

    def prepare(self, tasks: int) -> None:
        forget_recorded(self.staged_in)
        self.make()

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        staging = Staging(self.staged_in, writer.job, writer.sink)
        staging.enter(writer)
        if self._known(staging, sure=False) >= epoch:
            return False
        table = table_of(changes.frame, self.columns)
        if self.key:
            removed = changes.removed if changes.removed is not None else pl.repeat(False, table.num_rows, eager=True)
            table = table.append_column(REMOVED, removed.to_arrow().cast(pa.bool_()))
        return staging.put(writer, epoch, table)

    def publish(self, job: str, sink: str, epoch: int) -> None:
        staging = Staging(self.staged_in, job, sink)
        if self.roll is None or _due(staging, epoch, self.roll):
            self._publish(staging, epoch)

    def finish(self, job: str, sink: str, epoch: int) -> None:
        """Publish everything when a run ends, also epochs that would wait for more."""
        self._publish(Staging(self.staged_in, job, sink), epoch)

    def _publish(self, staging: Staging, epoch: int) -> None:
        # A crash may have cut the removal of a committed epoch: what is left of it is not read.
        for number in staging.numbers(min(epoch, self._known(staging, sure=True))):
            staging.remove(number)
        for group in self._merged(staging.epochs(epoch)):
            done = self._known(staging, sure=True)
            if fresh := [(number, rows) for number, rows in group if number > done]:
                failpoints.reach("publish.commit.before")
                staging.record(done, sure=False)
                # Named after the last of them, so that each is found to be committed.
                self.commit(Writer(staging.job, staging.sink), fresh[-1][0], self._folded([rows for _, rows in fresh]))
                failpoints.reach("publish.commit.after")
                staging.record(fresh[-1][0])
            for number, _ in group:
                staging.remove(number)

    def _known(self, staging: Staging, *, sure: bool) -> int:
        """The last committed epoch. Tasks may know an earlier one: what they stage again is not committed again."""
        recorded = staging.recorded(sure=sure)
        if recorded is not None:
            return recorded
        found = self.committed(staging.job, staging.sink)
        if sure:
            # Only the driver, which commits, knows that nothing comes between the two.
            staging.record(found)
        return found

    def _merged(self, epochs: Epochs) -> Iterator[list[tuple[int, pa.Table]]]:
        """The epochs that are merged into one commit."""
        held: list[tuple[int, pa.Table]] = []
        for number, rows in epochs:
            held.append((number, rows))
            if self.roll is None or sum(table.nbytes for _, table in held) > _MOST:
                yield held
                held = []
        if held:
            yield held

    def _folded(self, tables: list[pa.Table]) -> pa.Table:
        """The rows of several epochs; in a table, the last one of each key."""
        rows = pa.concat_tables(tables, promote_options="default")
        if not self.key or len(tables) == 1:
            return rows
        numbers = pa.table({name: rows[name] for name in self.key}).append_column(_ROW, pa.array(np.arange(rows.num_rows)))
        last = numbers.group_by(list(self.key)).aggregate([(_ROW, "max")])[f"{_ROW}_max"]
        return rows.take(pa.array(np.sort(last.to_numpy())))

    def forget(self, job: str, sink: str, epoch: int) -> None:
        """Remove the staged files of an epoch and of later ones, which no reader has seen."""
        Staging(self.staged_in, job, sink).forget(epoch)

    def last_epoch(self, writer: Writer) -> int | None:
        epoch = self.committed(writer.job, writer.sink)
        return None if epoch < 0 else epoch


def _due(staging: Staging, epoch: int, roll: timedelta) -> bool:
    """Whether the waiting epochs have waited long enough, or are large."""
    waiting = [file.stat() for file in staging.files(epoch)]
    since = min((file.st_mtime for file in waiting), default=None)
    return since is not None and (time.time() - since >= roll.total_seconds() or sum(file.st_size for file in waiting) >= _MUCH)
