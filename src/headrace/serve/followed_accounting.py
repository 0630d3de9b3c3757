"""The accounting of a job as a reader outside of it follows it: totals by step, the last epochs, and rates.

The sums are those of `jobs/facts/accounting.py`; new entries of the accounting topic are added epoch by epoch, so that a query costs only
what came since the last one.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from headrace.checkpoint.journal import OFFSETS, entry, moments_of
from headrace.engine.accounting import KEPT, REASONS
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.accounting import COUNTS, Sums, added, by_epoch, entries_in, no_entries, readable, stored_sums
from headrace.log import Log
from headrace.log.consumer import Consumer
from headrace.log.errors import UnknownTopic
from headrace.plan.topics import accounting_topic
from headrace.serve.histogram import Histogram

BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_EPOCHS = 300
_RATE_OVER = 5.0
# The rates of the last minute, in parts of this many seconds.
_PARTS, _PART = 30, 2.0


@dataclass
class StepTotals:
    """The fate of a step's records since its job began, and its state size after the last epoch."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    reasons: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(REASONS))
    kept: tuple[int, int] | None = None
    written: tuple[int, int] | None = None
    """How often tasks wrote to it, and for how many microseconds; None if it is no output."""


@dataclass
class EpochCounts:
    """The counts of one epoch by step, when it was committed, how long it took from its plan to its commit, and its watermark."""

    epoch: int
    steps: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: dict.fromkeys(COUNTS, 0)))
    committed_at: float | None = None
    seconds: float | None = None
    watermark: int | None = None


class FollowedAccounting:
    """Follows the accounting of one job."""

    def __init__(self, log: Log, place: JobDirectory) -> None:
        self._log, self._place = log, place
        self._job: str | None = None
        self._consumer: Consumer | None = None
        self._sums: Sums
        self._present: Sums
        self._waiting: pl.DataFrame
        self._begin()

    def read(self) -> None:
        """Read what was written since the last call."""
        record = self._place.record()
        if record is None:
            return
        if record.id != self._job:
            # The job was reset: its accounting starts again.
            self._job = record.id
            self._begin()
        # Read first: everything of an epoch is in the topic before the epoch is committed.
        done = self._place.committed_epoch()
        try:
            self._consumer = self._consumer or self._opened(record.id)
        except UnknownTopic:
            return
        columns = readable(self._log.topic(accounting_topic(self._place.name)))
        while (table := self._consumer.poll(timeout="0s", columns=columns)) is not None:
            self._waiting = pl.concat([self._waiting, entries_in(table, record.id)])
        self._close(done)
        for counts in self._epochs:
            if counts.committed_at is None:
                self._time(counts)
        self._present = self._sums if self._waiting.is_empty() else added(self._sums, self._waiting)

    def totals(self, step: str) -> StepTotals:
        counted = next((row for row in self._present.steps if row["step"] == step), None)
        kept = next(((row[KEPT[0]], row[KEPT[1]]) for row in self._present.kept if row["step"] == step), None)
        written = next(((row["writes"], row["write_micros"]) for row in self._present.written if row["step"] == step), None)
        if counted is None:
            return StepTotals(kept=kept, written=written)
        return StepTotals({name: counted[name] for name in COUNTS}, {name: counted[name] for name in REASONS}, kept, written)

    def epochs(self) -> list[EpochCounts]:
        """The last committed epochs in which records moved, the oldest first."""
        return [counts for counts in self._epochs if counts.committed_at is not None]

    def rates(self) -> Mapping[str, Mapping[str, float]]:
        """Records a second that each step received and emitted, over the last seconds."""
        now = time.time()
        recent = [counts for counts in self._epochs if counts.committed_at is not None and now - counts.committed_at < _RATE_OVER]
        rates: dict[str, dict[str, float]] = defaultdict(lambda: {"in": 0.0, "out": 0.0})
        for counts in recent:
            for step, found in counts.steps.items():
                for name in ("in", "out"):
                    rates[step][name] += found[name] / _RATE_OVER
        return rates

    def history(self) -> Mapping[str, list[float]]:
        """Records a second that each step received, in equal parts of the last minute, the oldest first."""
        now = time.time()
        found: dict[str, list[float]] = defaultdict(lambda: [0.0] * _PARTS)
        for counts in self._epochs:
            part = _PARTS - 1 - int((now - (counts.committed_at or 0.0)) / _PART)
            if 0 <= part < _PARTS:
                for step, moved in counts.steps.items():
                    found[step][part] += moved["in"] / _PART
        return found

    def last_minute(self, end: str) -> int:
        """The number of records with this fate, such as late or dead letters, in the last minute."""
        now = time.time()
        recent = [counts for counts in self._epochs if now - (counts.committed_at or 0.0) < 60.0]
        return sum(found[end] for counts in recent for found in counts.steps.values())

    def changed_at(self, step: str) -> float | None:
        """When the last epoch with changes for a step was committed."""
        return next((counts.committed_at for counts in reversed(self._epochs) if counts.committed_at and step in counts.steps), None)

    def _begin(self) -> None:
        self._consumer = None
        self._sums = Sums(self._job or "")
        self._present = self._sums
        self._waiting = no_entries()
        self._epochs: deque[EpochCounts] = deque(maxlen=_EPOCHS)
        self.durations = Histogram(BOUNDS)
        """How long epochs took, of those that were followed."""

    def _opened(self, job: str) -> Consumer:
        """Read from the beginning or, where old entries are removed, from after those that the job has added up."""
        topic = self._log.topic(accounting_topic(self._place.name))
        start = self._log.partition(topic, 0).state().start
        if not start:
            return self._log.consumer(topic.name)
        self._sums = stored_sums(self._place.accounting, job)
        return self._log.consumer(topic.name, start={0: max(self._sums.offset, start)})

    def _close(self, done: int) -> None:
        """Add up the finished epochs."""
        finished = self._waiting.filter(pl.col("epoch") <= done)
        if finished.is_empty():
            return
        self._waiting = self._waiting.filter(pl.col("epoch") > done)
        self._sums = added(self._sums, finished)
        for row in by_epoch(finished).to_dicts():
            self._epoch(row["epoch"]).steps[row["step"]] = {name: row[name] for name in COUNTS}

    def _epoch(self, number: int) -> EpochCounts:
        if not self._epochs or self._epochs[-1].epoch != number:
            self._epochs.append(EpochCounts(number))
        return self._epochs[-1]

    def _time(self, counts: EpochCounts) -> None:
        """Read from the journal when an epoch was committed, and planned; both entries are removed after a hundred epochs."""
        planned = entry(self._place.checkpoint, OFFSETS, counts.epoch - 1)
        try:
            planned_at, counts.committed_at = moments_of(self._place.checkpoint, counts.epoch)
            counts.seconds = max(0.0, counts.committed_at - planned_at)
            self.durations.add(counts.seconds)
            counts.watermark = int(json.loads(planned.read_text(encoding="utf-8").splitlines()[-1])["watermark"])
        except FileNotFoundError:
            if self._epochs and counts.epoch < self._epochs[-1].epoch - 100:
                counts.committed_at = 0.0
