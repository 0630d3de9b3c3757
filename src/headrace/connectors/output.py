"""The contract of an output: the changes of each epoch, complete and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl
import pyarrow as pa

from headrace.core.errors import ConnectorError


class WriterFenced(ConnectorError):
    """A writer of a run that another run has replaced."""


@dataclass(frozen=True)
class Writer:
    """The author of changes: one task of a job. Every run of the job has a higher generation than earlier ones, and fences them."""

    job: str
    sink: str
    task: int = 0
    generation: int = 0
    tasks: int = 0
    """How many tasks the job has; 0 where that does not matter."""

    @property
    def name(self) -> str:
        """The name of the writer over all runs of its job."""
        return f"{self.job}/{self.sink}/{self.task}"

    def part_of(self, parts: int) -> int:
        """The part of a target that the writer's records are in: a key stays in its part when there are more tasks.

        >>> [Writer("job", "view", task, tasks=4).part_of(2) for task in range(4)]
        [0, 0, 1, 1]
        """
        return self.task * parts // self.tasks if self.tasks and self.tasks % parts == 0 else self.task % parts

    def fenced(self) -> WriterFenced:
        return WriterFenced(
            f"writer {self.name} of run {self.generation} was replaced by a newer run of the job",
            why="its changes would mix with those of its successor",
            hint="stop this run; the new one continues",
        )


@dataclass(frozen=True)
class Changes:
    """The changes of a task for a sink in an epoch, in order.

    In a table there is at most one row for each key: the live row or, where `removed` is true, the row to remove.

    >>> changes = Changes(pl.DataFrame({"user": ["a", "b"], "n": [1, 2]}), pl.Series([False, True]))
    >>> changes.upserts.rows(), changes.deletes.rows()
    ([('a', 1)], [('b', 2)])
    """

    frame: pl.DataFrame
    removed: pl.Series | None = None

    @property
    def upserts(self) -> pl.DataFrame:
        return self.frame if self.removed is None else self.frame.filter(~self.removed)

    @property
    def deletes(self) -> pl.DataFrame:
        return self.frame.clear() if self.removed is None else self.frame.filter(self.removed)


class DeadLetters(Protocol):
    """Stores the records of an epoch that a system refuses because of their content."""

    def __call__(self, records: pl.DataFrame, reasons: Sequence[str]) -> None:
        """Store them durably. Called at most once for each epoch, before the accepted records are committed; a repetition changes
        nothing."""
        ...


class Output(Protocol):
    """A target in another system. It is sent to tasks, and each process connects on its own."""

    def prepare(self, tasks: int) -> None:
        """Create the target, or check that it accepts the results. The driver calls this before `tasks` tasks start."""
        ...

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        """Make an epoch's changes durable, all or none, together with the number of the epoch.

        False if the writer has already written this epoch or a later one. Raises `WriterFenced` if a newer run of the job writes.
        """
        ...

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """Let readers see all epochs up to this one, where `write` only stages them. The driver calls this, and may repeat it."""
        ...

    def last_epoch(self, writer: Writer) -> int | None:
        """The last epoch of a writer that readers can see; None if there is none, or if the system does not record it."""
        ...


def table_of(frame: pl.DataFrame, columns: pa.Schema) -> pa.Table:
    """Records as Arrow, in the declared types."""
    return frame.select(columns.names).to_arrow().cast(columns)
