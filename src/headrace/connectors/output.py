"""What the engine asks of any system that it writes: the changes of each epoch, whole and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl
import pyarrow as pa

from headrace.core.errors import ConnectorError


class Fenced(ConnectorError):
    """A writer of a run that another run has replaced."""


@dataclass(frozen=True)
class Writer:
    """Who writes: one task of a job. Every run of the job has a higher generation than those before it, which it shuts out."""

    job: str
    sink: str
    task: int = 0
    generation: int = 0

    @property
    def name(self) -> str:
        """What the writer is called over all runs of its job."""
        return f"{self.job}/{self.sink}/{self.task}"

    def fenced(self) -> Fenced:
        return Fenced(
            f"writer {self.name} of run {self.generation} was replaced by a newer run of the job",
            why="what it writes would mix with what its successor writes",
            hint="stop this run; the new one goes on",
        )


@dataclass(frozen=True)
class Changes:
    """What a task made for a sink in an epoch, in its order.

    Of a table, there is at most one row a key: what holds from now on or, where `removed` says so, what holds no more.

    >>> changes = Changes(pl.DataFrame({"user": ["a", "b"], "n": [1, 2]}), pl.Series([False, True]))
    >>> changes.kept.rows(), changes.gone.rows()
    ([('a', 1)], [('b', 2)])
    """

    frame: pl.DataFrame
    removed: pl.Series | None = None

    @property
    def kept(self) -> pl.DataFrame:
        return self.frame if self.removed is None else self.frame.filter(~self.removed)

    @property
    def gone(self) -> pl.DataFrame:
        return self.frame.clear() if self.removed is None else self.frame.filter(self.removed)


class DeadLetters(Protocol):
    """Takes the records of an epoch that a system refuses for what is in them."""

    def __call__(self, records: pl.DataFrame, reasons: Sequence[str]) -> None:
        """Keep them durably. Called at most once an epoch, before what the system does take is committed; a repeat changes nothing."""
        ...


class Output(Protocol):
    """A target in another system. It travels to tasks, and connects in each process anew."""

    def prepare(self, tasks: int) -> None:
        """Make the target, or check that it takes what will come. The driver asks for it before so many tasks start."""
        ...

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        """Make an epoch's changes durable, all or none of them, together with the number of the epoch.

        False if the writer has written this epoch, or a later one, already. Raises `Fenced` if a newer run of the job writes.
        """
        ...

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """Let readers see all epochs up to this one, where `write` only stages them. The driver asks for it, and may repeat it."""
        ...

    def last_epoch(self, writer: Writer) -> int | None:
        """The last epoch of a writer that readers can see; None if there is none, or if the system keeps no note of it."""
        ...


def table_of(frame: pl.DataFrame, columns: pa.Schema) -> pa.Table:
    """Records as Arrow, in the types that were declared."""
    return frame.select(columns.names).to_arrow().cast(columns)
