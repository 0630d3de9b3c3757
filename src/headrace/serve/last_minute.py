"""The last minute of a job, second by second: a thousand quick epochs cost no more than one."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

_SECONDS = 60
_RATE_OVER = 5
# The history has one value for each interval of this many seconds.
_PART = 2


class LastMinute:
    """The counts of the steps by the second in which their epoch was committed."""

    def __init__(self) -> None:
        self._seconds: dict[int, dict[str, dict[str, int]]] = {}

    def add(self, committed_at: float, step: str, counts: Mapping[str, int]) -> None:
        """Add what an epoch counted at a step."""
        second, now = int(committed_at), int(time.time())
        if second < now - _SECONDS:
            return
        if second not in self._seconds:
            self._seconds = {known: found for known, found in self._seconds.items() if known >= now - _SECONDS}
        steps = self._seconds.setdefault(second, {})
        before = steps.get(step)
        steps[step] = dict(counts) if before is None else {name: number + counts[name] for name, number in before.items()}

    def rates(self) -> Mapping[str, Mapping[str, float]]:
        """Records a second that each step received and emitted, over the last seconds."""
        now = time.time()
        rates: dict[str, dict[str, float]] = defaultdict(lambda: {"in": 0.0, "out": 0.0})
        for second, steps in self._seconds.items():
            # The oldest second counts in part, as the present one has only begun.
            share = min(1.0, second + 1 - (now - _RATE_OVER))
            if share > 0:
                for step, counts in steps.items():
                    for name in ("in", "out"):
                        rates[step][name] += share * counts[name] / _RATE_OVER
        return rates

    def history(self) -> Mapping[str, list[float]]:
        """Records a second that each step received, in equal parts of the minute, the oldest first."""
        now, parts = int(time.time()), _SECONDS // _PART
        found: dict[str, list[float]] = defaultdict(lambda: [0.0] * parts)
        for second, steps in self._seconds.items():
            part = parts - 1 - (now - second) // _PART
            if part >= 0:
                for step, counts in steps.items():
                    found[step][part] += counts["in"] / _PART
        return found

    def total(self, end: str) -> int:
        """The number of records with this fate, such as late or dead letters."""
        since = time.time() - _SECONDS
        return sum(counts[end] for second, steps in self._seconds.items() if second >= since for counts in steps.values())
