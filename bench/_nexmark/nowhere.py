"""A target that lets go of all it is given: what a query costs is then not what its results cost to keep."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.connectors.output import Changes, DeadLetters, Writer
from headrace.core.promise import Promise, Takes


@dataclass(frozen=True)
class Nowhere:
    """Takes facts and rows that change."""

    key: tuple[str, ...] = ()

    @property
    def promise(self) -> Promise:
        return Promise(Takes.LATEST, "nothing is kept", "nothing is written", "never")

    @property
    def address(self) -> tuple[str, ...]:
        return ("nowhere",)

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Everything fits."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> Discarded:
        return Discarded()

    def __str__(self) -> str:
        return "nowhere"


@dataclass(frozen=True)
class Discarded:
    """The same as a job writes it."""

    def prepare(self, tasks: int) -> None:
        """There is nothing to make."""

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        return True

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There are no readers."""

    def last_epoch(self, writer: Writer) -> int | None:
        return None
