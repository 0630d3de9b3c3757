"""The lateness of records: a small histogram that can be added up, is stored in a source's offset, and yields a bound.

The lateness of a record is its distance behind the latest earlier one of its partition, zero for one that is ahead of all. It is a function
of the partition alone: whatever the epochs were, and whichever process reads them, the same records give the same histogram. The planner of
an epoch learns from its records before it runs. The histogram is therefore in the offset that Spark writes first, together with the
watermark that follows from it, and a replayed epoch takes both from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.core.durations import microseconds
from headrace.plan.watermarks import Bounded, LossBudget, Watermark

# Upper edges of the bins, in microseconds: zero, then from a millisecond up to a third of a year, each at most a tenth above the previous
# one, in round numbers; then all the rest.
_STEPS = (10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 45, 48, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95)
_EDGES = np.array([0, *(step * 100 * 10**decade for decade in range(10) for step in _STEPS), 2**62], dtype=np.int64)
# A time before all others that can still be subtracted from any.
_LEAST = -(2**61)
# The number of records beyond the bound that a loss budget counts before it drops the older half.
_REMEMBERED = 1_000


@dataclass(frozen=True)
class Lateness:
    """The number of records by lateness: counts in about three hundred bins, and the longest."""

    counts: Mapping[int, int] = field(default_factory=dict)
    longest: int = 0

    @classmethod
    def of(cls, times: np.ndarray, high: int | None = None) -> Lateness:
        """From the event times of one partition in the order of their offsets; `high` is the latest earlier one."""
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
        """With every count halved, as often as needed to have at most `most` records: older ones count for less."""
        counts = self.counts
        while sum(counts.values()) > most:
            counts = {place: count // 2 for place, count in counts.items() if count > 1}
        return self if counts is self.counts else Lateness(counts, self.longest)

    def beyond(self, bound: int) -> int:
        """The number of records later than a bound; those of the bin that contains it count as later."""
        if bound >= self.longest:
            return 0
        return sum(count for place, count in self.counts.items() if _EDGES[place] > bound)

    def bound(self, share: float) -> int:
        """The smallest edge of a bin such that at most this share of the records was later."""
        allowed = int(self.total * share)
        for place in sorted(self.counts, reverse=True):
            if self.counts[place] > allowed:
                return int(_EDGES[place])
            allowed -= self.counts[place]
        return 0

    def quantile(self, share: float) -> int:
        """The lateness that this share of the records does not exceed; up to a tenth too large, never above the longest."""
        return min(self.longest, self.bound(1 - share))

    def to_json(self) -> list[Any]:
        return [self.longest, [[place, count] for place, count in self.counts.items()]]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> Lateness:
        return cls(dict(map(tuple, content[1])), content[0])


def chosen_bound(rule: Watermark, seen: Lateness | None) -> int:
    """The distance of a partition's watermark from its latest record, in microseconds.

    A loss budget takes its `max` until a partition has shown enough records for one of them to be lost.
    """
    if isinstance(rule, Bounded):
        return microseconds(rule.delay)
    most = microseconds(rule.max)
    if seen is None or seen.total * rule.share < 1:
        return most
    return min(most, seen.bound(rule.share))


def remembered(rule: LossBudget, seen: Lateness | None, new: Lateness) -> Lateness:
    """The lateness observed in a partition, including the present records."""
    both = new if seen is None else seen.plus(new)
    return both.faded(_REMEMBERED / rule.share)
