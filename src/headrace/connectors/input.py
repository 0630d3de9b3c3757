"""What the engine asks of any system that it reads: positions, and records between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

# Why a record could not be decoded, and the record as text; the engine sends these to the dead letters.
PROBLEM, RECORD = "_problem", "_record"
# Of a table: 1 if a record holds from now on, -1 if it removes its key.
OP = "_op"

Position = Mapping[int, int]


@dataclass(frozen=True)
class Ahead:
    """How far a stream can be read: the position, and the latest event time of each partition on the way there."""

    position: Position
    latest: Mapping[int, int]


class Input(Protocol):
    """A stream in another system. Reading between two positions gives the same records every time."""

    def beginning(self) -> Position:
        """Where a new job starts."""
        ...

    def earliest(self, partitions: Sequence[int]) -> Position:
        """The first record there is of some partitions, which came after the job began."""
        ...

    def end(self) -> Position:
        """Behind the last record there is now."""
        ...

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        """From `start` towards `end`, at most about `rows` records; event times above `limit` do not count."""
        ...

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The records of a partition from offset `first` up to `last`, with `_partition` and `_offset`.

        Where records may be undecodable there are two columns more: `_problem` says what is wrong with one, and `_record` is it as text.
        """
        ...

    def done(self, position: Position) -> None:
        """Everything before `position` is in the results of epochs that are finished. May be left out; a repeat changes nothing."""
        ...


def shared_out(start: Position, end: Position, rows: int | None) -> dict[int, int]:
    """How far an epoch goes from `start` towards `end` with about so many records.

    Every partition moves by the same share, so that none runs ahead of the others in event time.

    >>> shared_out({0: 0, 1: 10}, {0: 100, 1: 10, 2: 300}, 40)
    {0: 10, 1: 10, 2: 30}
    """
    waiting = {index: max(0, last - start.get(index, 0)) for index, last in end.items()}
    total = sum(waiting.values())
    share = 1.0 if rows is None or total <= rows else rows / total
    return {index: last if not waiting[index] else start.get(index, 0) + max(1, int(waiting[index] * share)) for index, last in end.items()}
