"""The observer of a run: derives facts from Spark's reports on epochs, their offsets, and the job's own accounting."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from headrace.core.clock import to_datetime
from headrace.engine.hot_keys import HotKey, sampled_epochs
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.engine.planning.input import Input, Position
from headrace.jobs.facts.progress import Missed, Progress
from headrace.operators.event_time.epoch_time import BEGINNING, END
from headrace.operators.event_time.watermark import Holder, held_by
from headrace.operators.event_time.watermark import StreamTime as Reached
from headrace.plan.watermarks import LossBudget, Watermark

# In seconds: the interval at which expensive facts are read, and the time over which a rate is measured.
EVERY = 10.0


class Observer:
    """Reads a job's progress. `hot_keys` and `missed` tell what it has met, and are asked now and then; `begins` is the last epoch of
    earlier runs."""

    def __init__(  # noqa: PLR0913 - what is read, and who is asked about the rest
        self, inputs: Mapping[str, Input], rules: Mapping[str, Watermark | None], *, hot_keys: Callable[[], list[HotKey]] = list,
        missed: Callable[[], Missed] = Missed, begins: EpochPlan | None = None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._inputs, self._rules, self._clock = inputs, rules, clock
        self._ask_hot_keys, self._hot_keys, self._asked = hot_keys, list[HotKey](), 0
        self._ask_missed, self._missed = missed, Missed()
        self._began = begins.taken if begins is not None else 0
        self._seen: deque[tuple[float, int]] = deque()
        self._plan: EpochPlan | None = None
        self._epoch_seconds: float | None = None
        self._lag_seconds: float | None = None
        self._due, self._round = clock(), -1

    def learn(self, report: Any) -> None:
        """Read the last report on an epoch."""
        if "triggerExecution" in report["durationMs"]:
            self._epoch_seconds = report["durationMs"]["triggerExecution"] / 1000
        source = report["sources"][0]
        # Before the first epoch Spark writes either nothing or the text "null".
        end = _plan(source["endOffset"])
        self._plan = end if end is not None else self._plan

    def stand_at(self, plan: EpochPlan | None) -> None:
        """Use the last committed epoch, whatever Spark reported."""
        self._plan = plan if plan is not None else self._plan

    @property
    def epoch(self) -> int:
        return self._plan.epoch if self._plan else 0

    @property
    def watermark(self) -> datetime | None:
        mark = self._plan.watermark if self._plan else BEGINNING
        return None if mark in (BEGINNING, END) else to_datetime(mark)

    @property
    def bounds(self) -> dict[str, timedelta]:
        """The learned bound of each stream that learns one; the largest of its partitions."""
        learning = {name: rule for name, rule in self._rules.items() if isinstance(rule, LossBudget) and name in self._reached}
        chosen = {name: self._reached[name].bounds(rule) for name, rule in learning.items()}
        return {name: timedelta(microseconds=max(bounds.values())) for name, bounds in chosen.items() if bounds}

    @property
    def holder(self) -> Holder | None:
        """The stream and partition that the watermark waits for, as of the last epoch."""
        if self._plan is None or self._plan.watermark == END:
            return None
        return held_by(self._reached, self._rules, self._plan.clock)

    def tell(self) -> None:
        """Tell the sources which epochs are done."""
        for name, position in self._positions.items():
            self._inputs[name].done(position)

    def look(self) -> Progress:
        """The present facts; expensive ones are at most `EVERY` seconds old."""
        read, now = self._plan.taken if self._plan else self._began, self._clock()
        self._seen.append((now, read))
        while len(self._seen) > 2 and self._seen[1][0] <= now - EVERY:
            self._seen.popleft()
        (first, low), (last, high) = self._seen[0], self._seen[-1]
        rate = (high - low) / (last - first) if last > first else 0.0
        ends = {name: source.end() for name, source in self._inputs.items()}
        if now >= self._due:
            self._due, self._round = now + EVERY, self._round + 1
            self._lag_seconds, self._missed = self._behind(ends), self._ask_missed()
        if sampled_epochs(self.epoch) > self._asked:
            self._asked, self._hot_keys = sampled_epochs(self.epoch), self._ask_hot_keys()
        waiting = sum(sum(end.values()) for end in ends.values()) - read
        return Progress(
            self.epoch, self.watermark, read - self._began, waiting, rate, self._epoch_seconds, self.bounds, self._hot_keys,
            self._lag_seconds, self.holder, self._missed, self._round,
        )  # fmt: skip

    @property
    def _reached(self) -> Mapping[str, Reached]:
        return self._plan.progress if self._plan else {}

    @property
    def _positions(self) -> Mapping[str, Position]:
        return self._plan.positions if self._plan else {}

    def _behind(self, ends: Mapping[str, Mapping[int, int]]) -> float | None:
        """How far the event time of the waiting records is ahead of those already read, in the partition where that is most."""
        found = []
        for name, source in self._inputs.items():
            if self._plan is None or self._rules.get(name) is None:
                continue
            ahead = source.ahead(self._positions[name], ends[name], None, self._plan.limits[name])
            reached = self._reached[name].partitions
            found.append(0)
            found += [latest - reached[partition].latest for partition, latest in ahead.latest.items() if partition in reached]
        return max(found) / 1_000_000 if found else None


def _plan(text: str | None) -> EpochPlan | None:
    content = json.loads(text or "null")
    return None if content is None else EpochPlan.from_json(content)
