"""A topic that has something to compact, and the check of what a compaction that was cut short leaves behind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.core.clock import ManualClock
from headrace.log import Log

HOUR = 3_600_000


def held(log: Log, topic: str = "a", **options: Any) -> list[tuple[Any, ...]]:
    table = log.read(topic, columns=["_offset", "_key", "value", "_tombstone"], **options)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Compactable:
    """Closed segments with repeated keys, a tombstone, an aborted transaction, one segment compacted before, and an open one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self._number = 0
        self._make()
        self.before = held(Log(path, clock=self.clock))
        latest = {row[1]: row for row in self.before if row[0] < 12}
        self.finished = sorted({*latest.values(), self.before[-1]})
        self.outcomes: set[bool] = set()

    def compact(self, path: Path) -> None:
        [report] = Log(path, clock=self.clock).maintain("a", force=True)
        assert report.error is None
        assert report.compacted is not None
        assert report.compacted.segments_before == 4

    def check(self, path: Path) -> None:
        """All is there that must be, once and in order; the log can be written, and the next compaction ends the work."""
        log = Log(path, clock=self.clock)
        found = held(log)
        assert found == sorted(set(found))
        assert set(self.finished) <= set(found) <= set(self.before)
        self.outcomes.add(found == self.finished)
        # Each reader in the middle sees the rest, whichever files a crash left.
        for start in (1, 4, 6, 9, 12):
            rest = held(log, start=start)
            assert [row for row in rest if row in self.finished] == [row for row in self.finished if row[0] >= start]
        with log.producer(linger="0s") as producer:
            assert producer.send("a", b"next", key=b"n").result().offset == self.before[-1][0] + 1
        [report] = log.maintain("a", force=True)
        assert report.error is None
        assert held(log)[:-1] == self.finished
        assert not [*(path / "topics/a/0").glob(".aside*"), *(path / "topics/a/0").glob("merging")]
        assert len([*(path / "topics/a/0").glob("*.segment")]) == 2

    def _make(self) -> None:
        log = Log(self.path, clock=self.clock)
        log.create_topic("a", config={"cleanup.policy": "compact", "min.compaction.lag.ms": HOUR, "delete.retention.ms": HOUR})
        self._segment(log, b"a", b"b", b"gone", b"a")
        self.clock.advance(timedelta(hours=2))
        log.maintain("a", force=True)
        self._segment(log, b"a", b"c")
        self._segment(log, b"b", b"d", transactional_id="aborted")
        self._segment(log, b"c", b"e", b"gone", b"e")
        with log.producer() as producer:
            producer.send("a", b"last", key=b"a")
        self.clock.advance(timedelta(hours=2))

    def _segment(self, log: Log, *keys: bytes, **settings: Any) -> None:
        with log.producer(**settings) as producer:
            if settings:
                producer.begin_transaction()
            for key in keys:
                producer.send("a", None if key == b"gone" else b"%d" % self._number, key=key)
                self._number += 1
            producer.flush()
        log.partition(log.topic("a"), 0).roll()
        log.maintenance.wait()
