"""What the records between two positions of an input teach of their lateness, for whoever plans an epoch or looks at a topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.input import Input, Position
from headrace.operators.disorder import Lateness
from headrace.operators.watermark import Progress

# From so many records at the end of what an epoch takes of a partition is learned: all of them in steady operation, while to look at
# every record of a long past would let the epoch wait.
NEWEST = 100_000


@dataclass(frozen=True)
class Times:
    """The event times of an input: the column that has them, and the limit above which one does not count."""

    source: Input
    column: str
    limit: int

    def lateness_ahead(self, start: Position, end: Position, seen: Progress, newest: int | None = None) -> dict[int, Lateness]:
        """How late the newest records from one position up to another are, by partition, after what was seen before."""
        newest = NEWEST if newest is None else newest
        found = {}
        for partition, last in end.items():
            first = start.get(partition, 0)
            if last <= first:
                continue
            reach = seen.partitions.get(partition)
            highs = [] if reach is None else [reach.latest]
            begin = max(first, last - newest)
            if begin > first:
                highs += self.source.ahead({partition: first}, {partition: begin}, None, self.limit).latest.values()
            found[partition] = self.lateness(partition, begin, last, max(highs, default=None))
        return found

    def lateness(self, partition: int, first: int, last: int, high: int | None = None) -> Lateness:
        """How late the records of a partition from one offset up to another are; `high` is the latest event time before them."""
        total = Lateness()
        for times in self._read(partition, first, last):
            total = total.plus(Lateness.of(times, high))
            latest = int(times.max())
            high = latest if high is None else max(high, latest)
        return total

    def _read(self, partition: int, first: int, last: int) -> Iterator[np.ndarray]:
        for batch in self.source.read(partition, first, last):
            times = batch.column(self.column).cast(pa.int64())
            known = times.filter(pc.less_equal(times, self.limit))
            if len(known):
                yield known.to_numpy()
