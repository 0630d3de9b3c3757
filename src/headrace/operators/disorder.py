"""How late records come: a small histogram that adds up, is kept in a source's offset, and is asked for a bound.

The lateness of a record is how far it is behind the latest one of its partition up to it, zero for one that is ahead of all. That is a
function of the partition alone: whatever the epochs were and whoever reads them, the same records teach the same. Whoever plans an epoch
learns from its records before it runs, so what was learned is in the offset that Spark writes down first, beside the watermark that was
made of it, and a replayed epoch takes both from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.core.durations import microseconds
from headrace.plan.watermarks import Bounded, LossBudget, Watermark

# Upper edges of the bins, in microseconds: nothing, then from a millisecond up to a third of a year, each at most a tenth above the one
# before it, in numbers that people read; then all the rest.
_STEPS = (10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 45, 48, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95)
_EDGES = np.array([0, *(step * 100 * 10**decade for decade in range(10) for step in _STEPS), 2**62], dtype=np.int64)
# A time before all others that can still be subtracted from any.
_LEAST = -(2**61)
# Of how many records beyond the bound a loss budget knows, before it forgets the older half.
_REMEMBERED = 1_000


@dataclass(frozen=True)
class Lateness:
    """How many records were how late: counts by bin, of which there are about three hundred, and the longest."""

    counts: Mapping[int, int] = field(default_factory=dict)
    longest: int = 0

    @classmethod
    def of(cls, times: np.ndarray, high: int | None = None) -> Lateness:
        """Of the event times of one partition in the order of their offsets; `high` is the latest one before them."""
        if not len(times):
            return cls()
        times = times.clip(_LEAST)
        reached = np.maximum.accumulate(times)
        behind = (reached if high is None else np.maximum(reached, high)) - times
        counts = np.bincount(np.searchsorted(_EDGES, behind))
        return cls({int(place): int(counts[place]) for place in np.flatnonzero(counts)}, int(behind.max()))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def plus(self, other: Lateness) -> Lateness:
        counts = {place: self.counts.get(place, 0) + other.counts.get(place, 0) for place in sorted({*self.counts, *other.counts})}
        return Lateness(counts, max(self.longest, other.longest))

    def faded(self, most: float) -> Lateness:
        """With half of every count, as often as it takes to have at most so many records: what is older counts for less."""
        counts = self.counts
        while sum(counts.values()) > most:
            counts = {place: count // 2 for place, count in counts.items() if count > 1}
        return self if counts is self.counts else Lateness(counts, self.longest)

    def beyond(self, bound: int) -> int:
        """How many records were later than a bound; those of a bin that it cuts count as later."""
        if bound >= self.longest:
            return 0
        return sum(count for place, count in self.counts.items() if _EDGES[place] > bound)

    def bound(self, share: float) -> int:
        """The smallest edge of a bin that at most such a share of the records was later than."""
        allowed = int(self.total * share)
        for place in sorted(self.counts, reverse=True):
            if self.counts[place] > allowed:
                return int(_EDGES[place])
            allowed -= self.counts[place]
        return 0

    def quantile(self, share: float) -> int:
        """The lateness that so much of the records does not exceed, up to a tenth too large, never above the longest."""
        return min(self.longest, self.bound(1 - share))

    def to_json(self) -> list[Any]:
        return [self.longest, [[place, count] for place, count in self.counts.items()]]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> Lateness:
        return cls(dict(map(tuple, content[1])), content[0])


def chosen_bound(rule: Watermark, seen: Lateness | None) -> int:
    """How far the watermark of a partition stays behind its latest record, in microseconds.

    A loss budget takes its `max` until a partition has shown enough records for one of them to be lost.
    """
    if isinstance(rule, Bounded):
        return microseconds(rule.delay)
    most = microseconds(rule.max)
    if seen is None or seen.total * rule.share < 1:
        return most
    return min(most, seen.bound(rule.share))


def remembered(rule: LossBudget, seen: Lateness | None, new: Lateness) -> Lateness:
    """What a partition's records have shown, with those that came now."""
    both = new if seen is None else seen.plus(new)
    return both.faded(_REMEMBERED / rule.share)
