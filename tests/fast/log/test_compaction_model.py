"""Compaction against a plain dict: whatever is sent, rolled, aborted and compacted, readers anywhere see the truth."""

import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.clock import ManualClock
from headrace.log import Log
from tests.support.examples import examples

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
RECORDS = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 99)), min_size=1, max_size=6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), RECORDS),
        st.tuples(st.just("commit"), RECORDS),
        st.tuples(st.just("abort"), RECORDS),
        st.tuples(st.just("open"), RECORDS),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("compact"), st.sampled_from([None, 200])),
        st.tuples(st.just("reader"), st.floats(0, 1)),
        st.tuples(st.just("poll"), st.integers(1, 5)),
        st.tuples(st.just("pass"), st.integers(1, 120)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=40,
)


@dataclass
class Reader:
    """A consumer, where it began, and what it saw."""

    consumer: Any
    start: int
    seen: list[tuple[int, bytes, bytes | None]] = field(default_factory=list)

    def poll(self, rows: int) -> bool:
        table = self.consumer.poll(max_rows=rows, timeout="0s", columns=["_offset", "_key", "value", "_tombstone"])
        if table is None:
            return False
        self.seen += [
            (offset, key, None if gone else value) for offset, key, value, gone in zip(*(c.to_pylist() for c in table.columns), strict=True)
        ]
        return True


class Story:
    """A compacted topic, and a model of it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.clock = ManualClock()
        self.log = Log(path, clock=self.clock, transaction_timeout=timedelta(days=99))
        self.log.create_topic(
            "a", config={"cleanup.policy": "compact", "segment.bytes": 2048, "delete.retention.ms": 60_000, "min.compaction.lag.ms": 1_000}
        )
        self.committed: list[tuple[int, bytes, bytes | None]] = []
        self.pending: list[tuple[int, bytes, bytes | None]] = []
        self.readers: list[Reader] = []
        self.writer = None
        self.writers = 0

    def take(self, step: str, argument: Any) -> None:
        getattr(self, step if step != "pass" else "pass_time")(argument)

    def send(self, records):
        with self.log.producer() as producer:
            self.committed += self._sent(producer, records)

    def commit(self, records):
        self._transaction(records, "commit_transaction")

    def abort(self, records):
        self._transaction(records, "abort_transaction")

    def open(self, records):
        if self.writer is None:
            self.writers += 1
            self.writer = self.log.producer(transactional_id=f"open-{self.writers}")
            self.writer.begin_transaction()
        self.pending += self._sent(self.writer, records)

    def end(self, commit):
        if self.writer is not None:
            if commit:
                self.writer.commit_transaction()
                self.committed = sorted(self.committed + self.pending)
            else:
                self.writer.abort_transaction()
            self.writer.close()
            self.writer, self.pending = None, []

    def roll(self, _):
        self.log.partition(self.log.topic("a"), 0).roll()
        self.log.maintenance.wait()

    def compact(self, _):
        [report] = self.log.maintain("a", force=True)
        assert report.error is None, report.error

    def reader(self, share):
        start = round(share * self.log.describe("a")["partitions"][0]["end"])
        self.readers.append(Reader(self.log.consumer("a", start=start), start))

    def poll(self, rows):
        for reader in self.readers:
            reader.poll(rows)

    def pass_time(self, seconds):
        self.clock.advance(timedelta(seconds=seconds))

    def reopen(self, _):
        if self.writer is None:
            self.log = Log(self.path, clock=self.clock, transaction_timeout=timedelta(days=99))

    def check(self):
        """Each reader saw records in order and once, and nothing that is the latest of its key is missing."""
        self.log.maintenance.wait()
        assert self.log.maintenance.failures == 0
        self.reader(0)
        truth = dict.fromkeys(self.committed)
        latest = {key: (offset, key, value) for offset, key, value in self.committed}
        for reader in self.readers:
            while reader.poll(3):
                pass
            offsets = [offset for offset, _, _ in reader.seen]
            assert offsets == sorted(set(offsets))
            assert all(row in truth and row[0] >= reader.start for row in reader.seen)
            missing = [row for row in latest.values() if row[2] is not None and row[0] >= reader.start and row not in reader.seen]
            assert missing == []
        # Folded from the beginning, deleted keys are absent whether or not their tombstone is still there.
        folded = {key: value for _, key, value in self.readers[-1].seen}
        expected = {key: value for key, (_, _, value) in latest.items() if value is not None}
        assert {key: value for key, value in folded.items() if value is not None} == expected
        snapshot = self.log.snapshot("a")
        assert dict(zip(snapshot.table["_key"].to_pylist(), snapshot.table["value"].to_pylist(), strict=True)) == expected

    def _transaction(self, records, decision):
        with self.log.producer(transactional_id="short") as producer:
            producer.begin_transaction()
            sent = self._sent(producer, records)
            getattr(producer, decision)()
        self.committed += sent if decision == "commit_transaction" else []

    def _sent(self, producer, records):
        values = [(key, None if value is None else b"%d" % value) for key, value in records]
        deliveries = [producer.send("a", value, key=key) for key, value in values]
        producer.flush()
        return [(delivery.result().offset, key, value) for delivery, (key, value) in zip(deliveries, values, strict=True)]


@settings(max_examples=examples(25))
@given(STEPS)
def test_readers_anywhere_see_every_latest_record_once_and_in_order(steps):
    with tempfile.TemporaryDirectory() as path:
        story = Story(path)
        for step, argument in steps:
            story.take(step, argument)
        story.end(commit=True)
        story.check()
