"""Bounded read-ahead: a stream declared with `align` is not read further than so much event time ahead of the slowest other one.

Without it a stream that is quick to read, or that has a long past, runs ahead of the others, and all it brings waits in the state for a
watermark that they hold back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.connectors.input import Input, Position
from headrace.core.durations import microseconds
from headrace.operators.watermark import Progress
from headrace.plan.watermarks import Watermark


@dataclass(frozen=True)
class Standing:
    """A stream when an epoch is planned: what was read of it, up to where there is something, and what is known of its time.

    `complete` says that nothing comes behind the end, as in a run over what is there.
    """

    source: Input
    start: Position
    end: Position
    progress: Progress
    rule: Watermark
    limit: int
    complete: bool = False

    def reached(self, now: int) -> int | None:
        """The event time of the furthest behind of its partitions that may still bring records; None if there is none."""
        return min(self._times(now), default=None)

    def upto(self, moment: int) -> dict[int, int]:
        """How far each partition can be read with no event time behind a moment."""
        return {partition: self._farthest(partition, self.start.get(partition, 0), last, moment) for partition, last in self.end.items()}

    def _times(self, now: int) -> Iterator[int]:
        patience = None if self.rule.idle is None else microseconds(self.rule.idle)
        for partition, last in self.end.items():
            first, reach = self.start.get(partition, 0), self.progress.partitions.get(partition)
            known = [] if reach is None else [reach.latest]
            if last > first:
                # What is read next tells where it is; a late record does not set it back.
                known += self._latest(partition, first, first + 1)
            elif self.complete or (reach is not None and patience is not None and now - reach.seen_at >= patience):
                continue
            if known:
                yield max(known)

    def _farthest(self, partition: int, first: int, last: int, moment: int) -> int:
        if last <= first or max(self._latest(partition, first, last), default=moment) <= moment:
            return last
        while last - first > 1:
            middle = (first + last) // 2
            if max(self._latest(partition, first, middle), default=moment) <= moment:
                first = middle
            else:
                last = middle
        return first if max(self._latest(partition, first, last), default=moment) > moment else last

    def _latest(self, partition: int, first: int, last: int) -> list[int]:
        return list(self.source.ahead({partition: first}, {partition: last}, None, self.limit).latest.values())


def aligned(standings: Mapping[str, Standing], bounds: Mapping[str, int], now: int) -> dict[str, Position]:
    """How far each stream may be read; `bounds` says by how much event time a stream may be ahead of the slowest other one."""
    ends: dict[str, Position] = {name: standing.end for name, standing in standings.items()}
    reached = {name: standing.reached(now) for name, standing in standings.items()} if bounds else {}
    for name, bound in bounds.items():
        others = [time for other, time in reached.items() if other != name and time is not None]
        if others:
            ends[name] = standings[name].upto(min(others) + bound)
    return ends
