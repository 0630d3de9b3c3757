"""The observed lateness of the records between two positions of an input, for the planner or for a look at a topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from headrace.engine.planning.input import Input, Position
from headrace.operators.event_time.lateness_histogram import Lateness
from headrace.operators.event_time.watermark import StreamTime
from headrace.plan.source_time import EventTime

# The number of records at the end of a partition's range that are observed: all of them in steady operation. Reading every record of a long
# past would delay the epoch.
NEWEST = 100_000


@dataclass(frozen=True)
class Times:
    """The event times of an input: how they are computed, and the limit above which one does not count."""

    source: Input
    time: EventTime
    limit: int

    def lateness_ahead(self, start: Position, end: Position, seen: StreamTime, newest: int | None = None) -> dict[int, Lateness]:
        """The lateness of the newest records between two positions, by partition, after what was seen before."""
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
        # A planner without a loss budget does not need the modules that compute times.
        from headrace.operators.event_time.record_time import times_of

        for batch in self.source.read(partition, first, last):
            times = times_of(self.time, batch)
            known = times.filter(pc.less_equal(times, self.limit))
            if len(known):
                yield known.to_numpy()
