"""A histogram of seconds that only grows, with buckets that add up, as Prometheus wants them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any


class Histogram:
    """Counts seconds by upper bounds.

    >>> found = Histogram((0.1, 1.0)); found.add(0.1); found.add(7.0, weight=2.0); found.told()
    {'buckets': [('0.1', 1.0), ('1.0', 1.0), ('+Inf', 3.0)], 'sum': 14.1}
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0.0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float, weight: float = 1.0) -> None:
        """Count a duration, for as many as it stands for."""
        self._counts[bisect_left(self._bounds, seconds)] += weight
        self._sum += seconds * weight

    def told(self) -> dict[str, Any]:
        """The buckets, each with all that are within its bound, and the sum."""
        bounds = (*(str(bound) for bound in self._bounds), "+Inf")
        return {"buckets": list(zip(bounds, accumulate(self._counts), strict=True)), "sum": self._sum}
