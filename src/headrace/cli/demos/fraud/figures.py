"""Rates, alerts by rule, how many planted cases are found, and how soon: from the log at each update."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, fields
from datetime import datetime

import numpy as np
import pyarrow as pa

from headrace.cli.demos.figures import rate_of
from headrace.cli.demos.fraud.rules import RULES
from headrace.jobs.facts.progress import Progress

_LATEST, _SAMPLE = 8, 200


@dataclass(frozen=True)
class RuleFigures:
    """One rule: its alerts, and of the planted cases that are complete how many there are, and how many of them are found."""

    rule: str
    alerts: int
    planted: int
    found: int


@dataclass(frozen=True)
class FraudFigures:
    """The figures of the demo at one moment."""

    seconds: float
    written: int
    judged: int
    rate_in: float
    rate_out: float
    lag_rows: int
    epoch_seconds: float | None
    watermark: datetime | None
    latency_p50: float | None
    latency_p99: float | None
    """Milliseconds from a payment to its alert, over the last alerts."""
    rules: tuple[RuleFigures, ...]
    latest: list[dict[str, object]] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        """For programs."""
        rules = {one.rule: {"alerts": one.alerts, "planted": one.planted, "found": one.found} for one in self.rules}
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"rules": rules}


class FraudObserver:
    """Remembers alerts and the truth, to compare them."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, int]] = deque()
        self._judged: deque[tuple[float, int]] = deque()
        self._alerted: Counter[tuple[str, str]] = Counter()
        self._planted: Counter[tuple[str, str]] = Counter()
        self._latencies: deque[float] = deque(maxlen=_SAMPLE)
        self._latest: deque[dict[str, object]] = deque(maxlen=_LATEST)

    def learn(self, alerts: pa.Table | None, planted: pa.Table | None) -> None:
        """Take in new alerts, and new truth."""
        for row in [] if alerts is None else alerts.to_pylist():
            self._alerted[row["rule"], row["card"]] += 1
            self._latencies.append(row["latency_ms"])
            self._latest.appendleft(row)
        for row in [] if planted is None else planted.to_pylist():
            self._planted[row["rule"], row["card"]] += 1

    def look(self, seconds: float, written: int, judged: int, progress: Progress | None = None) -> FraudFigures:
        """The figures `seconds` after the start."""
        p50, p99 = (float(np.percentile(self._latencies, share)) for share in (50, 99)) if self._latencies else (None, None)
        return FraudFigures(
            seconds=seconds, written=written, judged=judged, rate_in=rate_of(self._written, seconds, written),
            rate_out=rate_of(self._judged, seconds, judged), lag_rows=written - judged,
            epoch_seconds=progress.epoch_seconds if progress else None, watermark=progress.watermark if progress else None,
            latency_p50=p50, latency_p99=p99, rules=tuple(self._of(rule) for rule in RULES), latest=list(self._latest),
        )  # fmt: skip

    def _of(self, rule: str) -> RuleFigures:
        alerted, planted = (Counter({one: n for one, n in counts.items() if one[0] == rule}) for counts in (self._alerted, self._planted))
        return RuleFigures(rule, alerted.total(), planted.total(), (alerted & planted).total())
