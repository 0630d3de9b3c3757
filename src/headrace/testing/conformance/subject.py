"""A sink under test, and one writer to it."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from headrace.connectors.output import Changes, Output, Writer
from headrace.core.columns.schema import schema

COLUMNS = schema("user string, n bigint, note string")
KEY = ("user",)
Row = Mapping[str, Any]
Parts = list[list[dict[str, Any]]]


class Subject(ABC):
    """A sink whose target is empty, and a reader of that target."""

    key: tuple[str, ...] = ()
    """`KEY` if the changes of a table are written, none if facts are, one after the other. Certify each that the sink takes."""
    poison: str | None = None
    """A `note` that the system refuses, if there is such."""
    stall: str | None = None
    """A failpoint of the sink at which everything is written and nothing committed."""

    whole: bool = True
    """Whether readers see the rows of a task's epoch all at once, or one by one."""
    history: bool = False
    """Whether `parts` shows all that was ever written, where `rows` shows the latest of each key."""
    away: tuple[type[Exception], ...] = ()
    """The errors that a reader gets while the system is away."""

    @cached_property
    def sink(self) -> str:
        """The name of the sink: the targets of several subjects may record their epochs in one place."""
        return f"sink-{uuid.uuid4().hex[:8]}"

    @abstractmethod
    def output(self) -> Output:
        """The target as an output for `COLUMNS`, prepared; always the same target."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The rows that a reader of the target sees now; the facts of a user in their stored order."""

    def parts(self) -> Parts:
        """The same, divided into what one commit of a task changes as a whole; all of it, unless the system has partitions."""
        return [self.rows()]


class Letters:
    """Dead letters in memory, each epoch once, as the engine stores them."""

    def __init__(self) -> None:
        self.found: dict[int, list[dict[str, Any]]] = {}
        self.epoch = 0

    def __call__(self, records: pl.DataFrame, reasons: Sequence[str]) -> None:
        assert records.height == len(reasons)
        self.found.setdefault(self.epoch, [{**row, "reason": reason} for row, reason in zip(records.to_dicts(), reasons, strict=True)])


class SubjectWriter:
    """One task of a job that writes to a subject."""

    def __init__(self, subject: Subject, **writer: Any) -> None:
        self.output = subject.output()
        self.writer = Writer(**{"job": "job-1", "sink": subject.sink, **writer})
        self.letters = Letters()

    def write(self, epoch: int, rows: Sequence[Row], gone: Sequence[Row] = ()) -> bool:
        """Write the rows of an epoch, as a task does, and publish it, as the driver does when all tasks are done."""
        written = self.stage(epoch, rows, gone)
        self.output.publish(self.writer.job, self.writer.sink, epoch)
        return written

    def stage(self, epoch: int, rows: Sequence[Row], gone: Sequence[Row] = ()) -> bool:
        """The part that a task does alone."""
        self.letters.epoch = epoch
        return self.output.write(self.writer, epoch, changes_of(rows, gone), self.letters)


def changes_of(rows: Sequence[Row], gone: Sequence[Row] = ()) -> Changes:
    types = {"user": pl.String, "n": pl.Int64, "note": pl.String}
    frame = pl.DataFrame([*rows, *gone], schema=types)
    return Changes(frame, pl.Series([False] * len(rows) + [True] * len(gone), dtype=pl.Boolean) if gone else None)


def made(epoch: int, users: int = 6, note: str = "ok") -> list[dict[str, Any]]:
    """Possible rows of an epoch: one for each user, with a number that increases from epoch to epoch."""
    return [{"user": f"u{user}", "n": 100 * epoch + user, "note": note} for user in range(users)]


def epoch_of(number: int) -> int:
    """The epoch that wrote a row, by its number.

    >>> epoch_of(made(3)[2]["n"])
    3
    """
    return number // 100


def ordered(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return sorted((dict(row) for row in rows), key=lambda row: (row["user"], row["n"]))
