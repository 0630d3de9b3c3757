"""Rates, lag and the most viewed URLs, from the log and Spark at each update."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta

import pyarrow as pa

from headrace.jobs.facts.progress import Progress

_SPAN = 5.0  # seconds that rates are averaged over
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Figures:
    """The figures of the demo at one moment."""

    seconds: float
    written: int
    counted: int
    changes: int
    rate_in: float
    rate_out: float
    lag_rows: int
    lag_seconds: float
    epoch_seconds: float | None
    watermark: datetime | None
    minute: datetime | None
    top: list[tuple[str, int, int]] = field(default_factory=list)
    """(url, views in this minute, views in the minute before), the most viewed first."""

    def row(self) -> dict[str, object]:
        """For programs."""
        top = [{"url": url, "views": views, "before": before} for url, views, before in self.top]
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"top": top}


class FigureObserver:
    """Remembers earlier observations, to compute rates and waits."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, int]] = deque()
        self._counted: deque[tuple[float, int]] = deque()
        self._waiting: deque[tuple[float, int]] = deque()
        self._views: dict[datetime, dict[str, int]] = {}
        self.changes = 0

    def learn(self, changed: pa.Table | None) -> None:
        """Apply changed counts; a later one of a URL and minute replaces earlier ones."""
        if changed is None:
            return
        self.changes += changed.num_rows
        for url, minute, views in zip(*(changed[name].to_pylist() for name in ("url", "minute", "views")), strict=True):
            if views is not None:  # a count that is forgotten ends with an empty record
                self._views.setdefault(minute, {})[url] = views
        for old in sorted(self._views)[:-5]:
            del self._views[old]

    def look(self, seconds: float, written: int, counted: int, progress: Progress | None = None, *, top: int = 10) -> Figures:
        """The figures `seconds` after the start, with the numbers of written and of counted views."""
        self._waiting.append((seconds, written))
        while self._waiting and self._waiting[0][1] <= counted:
            self._waiting.popleft()
        minute = max(self._views, default=None)
        return Figures(
            seconds=seconds, written=written, counted=counted, changes=self.changes,
            rate_in=rate_of(self._written, seconds, written), rate_out=rate_of(self._counted, seconds, counted),
            lag_rows=written - counted, lag_seconds=seconds - self._waiting[0][0] if self._waiting else 0.0,
            epoch_seconds=progress.epoch_seconds if progress else None, watermark=progress.watermark if progress else None,
            minute=minute, top=self._top(minute, top),
        )  # fmt: skip

    def _top(self, minute: datetime | None, count: int) -> list[tuple[str, int, int]]:
        if minute is None:
            return []
        before = self._views.get(minute - _MINUTE, {})
        now = sorted(self._views[minute].items(), key=lambda item: (-item[1], item[0]))
        return [(url, views, before.get(url, 0)) for url, views in now[:count]]


def rate_of(seen: deque[tuple[float, int]], seconds: float, count: int) -> float:
    """The rate of a count over the last seconds, with what was seen before."""
    seen.append((seconds, count))
    while len(seen) > 2 and seen[0][0] < seconds - _SPAN:
        seen.popleft()
    (first, low), (last, high) = seen[0], seen[-1]
    return (high - low) / (last - first) if last > first else 0.0
