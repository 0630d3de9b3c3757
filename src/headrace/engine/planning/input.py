"""Inputs of the engine: positions in a stream of another system, and the records between two of them.

Connectors implement the protocol; the engine imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

Position = Mapping[int, int]
# The columns that an input may add: why a record could not be decoded, and the record as text. Such records are dead letters.
PROBLEM, RECORD = "_problem", "_record"


@dataclass(frozen=True)
class Ahead:
    """The range of a stream that can be read next: the end position, and the latest event time of each partition on the way there."""

    position: Position
    latest: Mapping[int, int]


class Input(Protocol):
    """A stream in another system. Reading between two positions returns the same records every time."""

    @property
    def label(self) -> str:
        """Its name in messages, as in "topic 'orders'"."""
        ...

    def identity(self) -> str:
        """An id that differs if the stream was deleted and created again under the same name: positions are meaningless there."""
        ...

    def beginning(self) -> Position:
        """The start position of a new job."""
        ...

    def earliest(self, partitions: Sequence[int]) -> Position:
        """The first record of some partitions, which were added after the job began."""
        ...

    def end(self) -> Position:
        """The position after the last record that can be read now, and before the first one whose transaction is open."""
        ...

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        """From `start` toward `end`, at most about `rows` records; event times above `limit` do not count."""
        ...

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The records of a partition from offset `first` up to `last`, with `_partition` and `_offset`.

        Where records may be undecodable, there are two more: `PROBLEM` and `RECORD`.
        """
        ...

    def done(self, position: Position) -> None:
        """Everything before `position` is in the results of finished epochs. Some calls may be left out; a repeated call changes
        nothing."""
        ...
