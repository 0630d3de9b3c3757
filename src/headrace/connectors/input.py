"""What the engine asks of any system that it reads: positions, and records between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

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

    def end(self) -> Position:
        """Behind the last record there is now."""
        ...

    def ahead(self, start: Position, end: Position, rows: int | None, limit: int) -> Ahead:
        """From `start` towards `end`, at most about `rows` records; event times above `limit` do not count."""
        ...

    def read(self, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The records of a partition from offset `first` up to `last`, with `_partition` and `_offset`."""
        ...
