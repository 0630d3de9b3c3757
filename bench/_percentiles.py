"""A percentile of the delays of many short runs of both sides, and how sure the ratio of the two is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _harness import Measure

_DRAWS = 200
_SEED = 20260101


def percentile(name: str, share: float, ours: Sequence[Sequence[float]], peer: Sequence[Sequence[float]]) -> Measure:
    """Delays in seconds, run by run, all of a side taken together; runs in the same place were made one after the other.

    One run has too few slow records for its 99th percentile to mean much. So pairs of runs are drawn, as many as there are and some of
    them twice, again and again: the ratio is the median over the draws, and its range is what it was in nineteen of twenty.
    """
    measure = Measure(name, "ms")
    draws = np.random.default_rng(_SEED).integers(0, len(ours), (_DRAWS, len(ours)))
    figures = [(_together(ours, draw, share), _together(peer, draw, share)) for draw in draws]
    figures.sort(key=lambda both: both[0] / both[1])
    outside = _DRAWS // 40
    for mine, theirs in figures[outside:-outside]:
        measure.ours.append(mine)
        measure.peer.append(theirs)
    return measure


def _together(runs: Sequence[Sequence[float]], chosen: np.ndarray, share: float) -> float:
    return float(np.quantile(np.concatenate([runs[number] for number in chosen]), share) * 1000)
