"""An output whose tasks stage an epoch, and whose driver makes one commit of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from headrace.connectors.output import Changes, DeadLetters, Writer, table_of
from headrace.connectors.staging import REMOVED, Staging
from headrace.core import failpoints

Epochs: TypeAlias = Iterator[tuple[int, pa.Table]]
"""Numbers of epochs with the rows of all tasks, in their order."""


class StagedOutput(ABC):
    """What tables as files have in common. A commit holds the number of its epoch, so a commit that is there is not made again."""

    columns: pa.Schema
    key: tuple[str, ...]

    @property
    @abstractmethod
    def staged_in(self) -> Path:
        """Where tasks put their files; readers of the table do not look there."""

    @property
    def waits(self) -> bool:
        """Whether epochs may wait for later ones: then it is to be asked to publish also when there is no new one."""
        return False

    @abstractmethod
    def committed(self, job: str, sink: str) -> int:
        """The last epoch of a job that is committed; -1 if there is none."""

    @abstractmethod
    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        """Make one commit of the rows of all tasks; of a table, rows that are gone are marked in the column `REMOVED`."""

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        staging = Staging(self.staged_in, writer.job, writer.sink)
        staging.enter(writer)
        if self.committed(writer.job, writer.sink) >= epoch:
            return False
        table = table_of(changes.frame, self.columns)
        if self.key:
            removed = changes.removed if changes.removed is not None else pl.repeat(False, table.num_rows, eager=True)
            table = table.append_column(REMOVED, removed.to_arrow().cast(pa.bool_()))
        return staging.put(writer, epoch, table)

    def publish(self, job: str, sink: str, epoch: int) -> None:
        staging = Staging(self.staged_in, job, sink)
        for group in self.united(staging.epochs(epoch)):
            done = self.committed(job, sink)
            if fresh := [(number, rows) for number, rows in group if number > done]:
                failpoints.reach("publish.commit.before")
                # Named after the last of them, so that each is found to be there.
                rows = pa.concat_tables([rows for _, rows in fresh], promote_options="default")
                self.commit(Writer(job, sink), fresh[-1][0], rows)
                failpoints.reach("publish.commit.after")
            for number, _ in group:
                staging.remove(number)

    def finish(self, job: str, sink: str, epoch: int) -> None:
        """Publish all of it when a run ends, also what would wait for more."""
        StagedOutput.publish(self, job, sink, epoch)

    def united(self, epochs: Epochs) -> Iterator[list[tuple[int, pa.Table]]]:
        """The epochs that become one commit together; by itself each is one."""
        for one in epochs:
            yield [one]

    def forget(self, job: str, sink: str, epoch: int) -> None:
        """Take back what is staged of an epoch, and of those after it, that no reader has seen."""
        Staging(self.staged_in, job, sink).forget(epoch)

    def last_epoch(self, writer: Writer) -> int | None:
        epoch = self.committed(writer.job, writer.sink)
        return None if epoch < 0 else epoch
