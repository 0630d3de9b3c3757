"""Bounded read-ahead: a stream declared with `align` is read at most that much event time ahead of the slowest other one.

Without it, a stream that is quick to read, or that has a long past, runs ahead of the others, and its records wait in the state for a
watermark that the others hold back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.engine.planning.input import Input, Position
from headrace.operators.event_time.watermark import StreamTime, silent
from headrace.plan.watermarks import Watermark


@dataclass(frozen=True)
class Standing:
    """A stream when an epoch is planned: its position, its end, and the state of its event time.

    `complete` says that nothing follows the end, as in a run over the present records.
    """

    source: Input
    start: Position
    end: Position
    progress: StreamTime
    rule: Watermark
    limit: int
    complete: bool = False

    def reached(self, now: int) -> int | None:
        """The event time of the slowest of its partitions that may still bring records; None if there is none."""
        return min(self._times(now), default=None)

    def upto(self, moment: int) -> dict[int, int]:
        """How far each partition can be read without an event time after a moment, except for the last ninth of that.

        All partitions are searched at once, and not to the last record: where there is no index, as in Kafka, each probe reads records.
        """
        start = {partition: self.start.get(partition, 0) for partition in self.end}
        position, near = self._looked(start, self.end, moment)
        reached = {partition: position[partition] if partition in near else start[partition] for partition in self.end}
        beyond = {partition: position[partition] for partition in self.end if partition not in near}
        while middle := {
            partition: (reached[partition] + last) // 2
            for partition, last in beyond.items()
            if last - reached[partition] > max(1, (reached[partition] - start[partition]) // 8)
        }:
            position, near = self._looked({partition: reached[partition] for partition in middle}, middle, moment)
            reached |= {partition: position[partition] for partition in near}
            beyond |= {partition: position[partition] for partition in middle if partition not in near}
        return reached

    def _looked(self, first: Position, last: Position, moment: int) -> tuple[Position, set[int]]:
        """How far a probe reached, and the partitions in which it met no event time after a moment."""
        ahead = self.source.ahead(first, last, None, self.limit)
        return ahead.position, {partition for partition in last if ahead.latest.get(partition, moment) <= moment}

    def _times(self, now: int) -> Iterator[int]:
        waiting = {partition: self.start.get(partition, 0) for partition, last in self.end.items() if last > self.start.get(partition, 0)}
        following = {partition: first + 1 for partition, first in waiting.items()}
        upcoming = self.source.ahead(waiting, following, None, self.limit).latest if waiting else {}
        for partition in self.end:
            reach = self.progress.partitions.get(partition)
            known = [] if reach is None else [reach.latest]
            if partition in waiting:
                # The next records determine its place; a late record does not set it back.
                known += [upcoming[partition]] if partition in upcoming else []
            elif self.complete or (reach is not None and silent(self.rule, reach.seen_at, now)):
                continue
            if known:
                yield max(known)


def aligned(standings: Mapping[str, Standing], bounds: Mapping[str, int], now: int) -> dict[str, Position]:
    """How far each stream may be read; `bounds` says by how much event time a stream may be ahead of the slowest other one."""
    ends: dict[str, Position] = {name: standing.end for name, standing in standings.items()}
    reached = {name: standing.reached(now) for name, standing in standings.items()}
    for name, bound in bounds.items():
        others = [time for other, time in reached.items() if other != name and time is not None]
        if others:
            ends[name] = standings[name].upto(min(others) + bound)
    return ends
