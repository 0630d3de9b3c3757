"""End-to-end latency of a job as a histogram: from the append of a record to the commit of its epoch.

It is read from the outside, from the journal of the job and the times of the records in the log, and costs the job nothing. Of each
partition in each epoch the first records are looked at, which have waited longest; they count for all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.checkpoint.journal import COMMITS, OFFSETS, entry
from headrace.jobs.directory import JobDirectory
from headrace.log import Log
from headrace.log.errors import OffsetOutOfRange, UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.serve.histogram import Histogram

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SAMPLE = 500
# Of older epochs the journal has no entry any more.
_EPOCHS = 90


class Latencies:
    """Follows the epochs of one job from its first look on."""

    def __init__(self, log: Log, place: JobDirectory) -> None:
        self._log, self._place = log, place
        self._epoch: int | None = None
        self._histogram = Histogram(BOUNDS)

    def read(self) -> dict[str, Any]:
        """The histogram with what was committed since the last look: buckets that add up, and the sum."""
        done = self._place.committed_epoch()
        first = max(done - _EPOCHS, done - 1 if self._epoch is None or self._epoch > done else self._epoch) + 1
        for epoch in range(max(first, 1), done + 1):
            self._add(epoch)
        self._epoch = done
        return self._histogram.told()

    def _add(self, epoch: int) -> None:
        try:
            committed = entry(self._place.checkpoint, COMMITS, epoch - 1).stat().st_mtime
            after = self._positions(epoch)
            before = self._positions(epoch - 1) if epoch > 1 else {}
        except FileNotFoundError:
            return
        for stream, positions in after.items():
            for partition, end in positions.items():
                start = before.get(stream, {}).get(partition, 0)
                for appended_at, weight in self._sampled(stream, int(partition), start, end):
                    self._histogram.add(max(0.0, committed - appended_at), weight)

    def _positions(self, epoch: int) -> Mapping[str, Mapping[str, int]]:
        text = entry(self._place.checkpoint, OFFSETS, epoch - 1).read_text(encoding="utf-8")
        found: Mapping[str, Mapping[str, int]] = json.loads(text.splitlines()[-1]).get("positions", {})
        return found

    def _sampled(self, stream: str, partition: int, start: int, end: int) -> Iterator[tuple[float, float]]:
        """When records of a range were stored, and how many records each stands for."""
        if end <= start:
            return
        try:
            place = self._log.partition(self._log.topic(stream), partition)
            cursor = Cursor(place, max(start, place.state().start), outcomes=self._log.transactions)
            batches = cursor.read(ReadLimits(rows=min(_SAMPLE, end - start)), ("_appended_at",))
        except (UnknownTopic, OffsetOutOfRange):
            # It is read from another system, or retention has removed the records.
            return
        moments = [int(moment) for batch in batches for moment in batch.column(0).cast("int64").to_pylist()]
        for moment in moments:
            yield moment / 1_000_000, (end - start) / len(moments)
