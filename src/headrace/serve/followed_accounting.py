"""The accounting of a job as a reader outside of it follows it: totals by step, the last epochs, and the last minute.

The sums are those of `jobs/facts/accounting.py`; new entries of the accounting topic are added epoch by epoch, so that a query costs only
what came since the last one. Of an epoch whose entry the journal has dropped, the log still knows when its tasks wrote.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection
from contextlib import suppress
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
from headrace.serve.last_minute import LastMinute

BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_EPOCHS = 300
# Watermarks are kept for ten minutes.
_MARKS = 600


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
    """The counts of one epoch by step and when it was committed; while the journal has it, how long it took from its plan to its commit,
    and its watermark."""

    epoch: int
    committed_at: float
    steps: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: dict.fromkeys(COUNTS, 0)))
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
        columns = [*readable(self._log.topic(accounting_topic(self._place.name))), "_appended_at"]
        while (table := self._consumer.poll(timeout="0s", columns=columns)) is not None:
            self._waiting = pl.concat([self._waiting, entries_in(table, record.id)])
            stored = pl.DataFrame(table.select(["epoch", "_appended_at"])).group_by("epoch").agg(pl.col("_appended_at").max())
            self._stored |= {epoch: moment.timestamp() for epoch, moment in stored.iter_rows()}
        self._close(done)
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
        return list(self._epochs)

    def changed_at(self, step: str) -> float | None:
        """When the last epoch with changes for a step was committed."""
        return self._changed.get(step)

    def up_to(self, epoch: int, steps: Collection[str]) -> dict[str, int] | None:
        """The sums of the counts of some steps up to an epoch; None if the entries of the epochs since then are not all there."""
        if self._consumer is None:
            return None
        topic = self._log.topic(accounting_topic(self._place.name))
        start = self._log.partition(topic, 0).state().start
        entries = entries_in(self._log.read(topic.name, columns=readable(topic), start=start), self._job or "")
        if start and (entries.is_empty() or int(entries["epoch"].min()) > epoch):  # type: ignore[arg-type] # there are entries
            return None
        later = by_epoch(entries.filter((pl.col("epoch") > epoch) & (pl.col("epoch") <= self._done), pl.col("step").is_in(list(steps))))
        before = [row for row in self._sums.steps if row["step"] in steps]
        return {name: sum(row[name] for row in before) - int(later[name].sum()) for name in COUNTS}

    def _begin(self) -> None:
        self._consumer = None
        self._sums = Sums(self._job or "")
        self._present = self._sums
        self._waiting = no_entries()
        self._done = 0
        self._epochs: deque[EpochCounts] = deque(maxlen=_EPOCHS)
        self.minute = LastMinute()
        """What moved in the last minute."""
        self._changed: dict[str, float] = {}
        self.watermarks: deque[tuple[float, int]] = deque(maxlen=_MARKS)
        """Moments, and the watermark of the epoch that was committed then; about one a second."""
        self._stored: dict[int, float] = {}
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
        self._done = done
        finished = self._waiting.filter(pl.col("epoch") <= done)
        if finished.is_empty():
            return
        self._waiting = self._waiting.filter(pl.col("epoch") > done)
        self._sums = added(self._sums, finished)
        for row in by_epoch(finished).to_dicts():
            counts = self._epoch(row["epoch"])
            counts.steps[row["step"]] = {name: row[name] for name in COUNTS}
            self._changed[row["step"]] = counts.committed_at
            self.minute.add(counts.committed_at, row["step"], counts.steps[row["step"]])
        self._stored = {epoch: moment for epoch, moment in self._stored.items() if epoch > done}

    def _epoch(self, number: int) -> EpochCounts:
        if not self._epochs or self._epochs[-1].epoch != number:
            self._epochs.append(self._timed(EpochCounts(number, self._stored[number])))
        return self._epochs[-1]

    def _timed(self, counts: EpochCounts) -> EpochCounts:
        """An epoch with what the journal knows of it. Both entries are removed after a hundred epochs."""
        planned = entry(self._place.checkpoint, OFFSETS, counts.epoch - 1)
        with suppress(FileNotFoundError):
            planned_at, counts.committed_at = moments_of(self._place.checkpoint, counts.epoch)
            counts.seconds = max(0.0, counts.committed_at - planned_at)
            self.durations.add(counts.seconds)
            counts.watermark = int(json.loads(planned.read_text(encoding="utf-8").splitlines()[-1])["watermark"])
            if not self.watermarks or counts.committed_at >= self.watermarks[-1][0] + 1.0:
                self.watermarks.append((counts.committed_at, counts.watermark))
        return counts
