"""Committed offsets: an internal compacted topic, folded into the latest per group and partition.

An offset sent in a transaction takes effect at the commit. A reader never waits for an open transaction: the group makes sure that it can
no longer commit once another member has taken over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.columns.schema import schema
from headrace.log.files.cursor import ABORTED, COMMITTED, OPEN, Cursor, Outcomes, ReadLimits
from headrace.log.files.frame import Frame
from headrace.log.files.partition import Partition
from headrace.log.files.writers import Author
from headrace.log.groups.assignment import TopicPartition
from headrace.log.topic import Topic, TopicConfig
from headrace.log.transactions import Transactions

TOPIC = Topic(
    "__offsets", partitions=1, key=("group", "topic", "partition"), time="committed_at", id="offsets",
    columns=schema("group string, topic string, partition int, topic_id string, offset bigint, metadata string, "
                   "committed_at timestamp, generation bigint"),
    # Small segments: closed ones are compacted, so that a new process has little to read.
    config=TopicConfig().with_settings({"cleanup.policy": "compact", "segment.bytes": 1024 * 1024}),
)  # fmt: skip
# Half of the shortest time that a tombstone is kept: a reader that last looked longer ago may have missed one.
_STALE = TOPIC.config.delete_retention_ms * 1000 // 2
_COLUMNS = ("group", "topic", "partition", "topic_id", "offset", "metadata", "committed_at", "generation", "_tombstone", "_offset")


class Committed(NamedTuple):
    """A committed offset: the next one to process. `topic_id` distinguishes a topic from an earlier one of the same name."""

    topic_id: str
    offset: int
    metadata: str
    committed_at: int
    generation: int


class Offsets:
    """The committed offsets of all groups of a log."""

    def __init__(self, partition: Partition, transactions: Transactions, clock: Clock) -> None:
        self._partition = partition
        self._clock = clock
        self._transactions = transactions
        self._guard = threading.Lock()
        self._begin()

    @property
    def topic(self) -> str:
        """The name of the topic they are in."""
        return self._partition.topic.name

    def of(self, group: str) -> dict[TopicPartition, Committed]:
        """The offsets that a group has committed so far."""
        self._refresh()
        found = [(place, committed) for (name, place), (committed, _) in self._latest.items() if name == group]
        return {place: committed for place, committed in sorted(found) if committed is not None}

    def settled(self, group: str) -> dict[TopicPartition, Committed]:
        """The offsets that a group has committed, including those that a member wrote before it died and that are not yet durable.

        A member that takes over must see them: the sync of any later commit would make them take effect, and their records would be
        processed twice.
        """
        self._transactions.settle()
        self._partition.sync()
        return self.of(group)

    def groups(self) -> list[str]:
        """Every group that has committed an offset."""
        self._refresh()
        return sorted({name for (name, _), (committed, _) in self._latest.items() if committed is not None})

    def store(self, rows: pa.Table) -> None:
        """Commit these rows; durable when this returns."""
        layout, now = self._partition.layout, self._clock.now()
        self._partition.append([layout.stored(layout.arrange(rows, now), now)], Author(), durable=True)

    def forget(self, group: str, places: Iterable[TopicPartition]) -> None:
        """Delete a group's committed offsets of some partitions; durable when this returns."""
        rows = [
            {"group": group, "topic": topic, "partition": index, "committed_at": self._clock.now(), "_tombstone": True}
            for topic, index in places
        ]
        if rows:
            columns = [TOPIC.columns.field(name) for name in ("group", "topic", "partition", "committed_at")]
            self.store(pa.Table.from_pylist(rows, pa.schema([*columns, pa.field("_tombstone", pa.bool_())])))

    def _begin(self) -> None:
        self._outcomes = _PassingOpen(self._transactions)
        self._cursor = Cursor(self._partition, 0, outcomes=self._outcomes)
        # By group and partition: the offset, None if it was deleted, and its place in the topic.
        self._latest: dict[tuple[str, TopicPartition], tuple[Committed | None, int]] = {}
        self._refreshed_at = self._clock.now()

    def _refresh(self) -> None:
        with self._guard:
            if self._clock.now() - self._refreshed_at > _STALE:
                self._begin()
            self._refreshed_at = self._clock.now()
            for frame in self._outcomes.decided():
                cursor = Cursor(self._partition, frame.base)
                while batches := cursor.read(ReadLimits(), _COLUMNS, until=frame.next):
                    self._learn(batches)
            while batches := self._cursor.read(ReadLimits(), _COLUMNS):
                self._learn(batches)

    def _learn(self, batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            times = batch.column("committed_at").cast(pa.int64())
            columns = [times if name == "committed_at" else batch.column(name) for name in _COLUMNS]
            for group, topic, index, topic_id, offset, metadata, committed_at, generation, gone, place in zip(
                *(column.to_pylist() for column in columns), strict=True
            ):
                key = (group, (topic, index))
                # The order is that of the topic, which compaction sees, too: a late decision does not overtake.
                if key not in self._latest or place > self._latest[key][1]:
                    committed = None if gone else Committed(topic_id, offset, metadata, committed_at, generation)
                    self._latest[key] = (committed, place)


class _PassingOpen:
    """Outcomes for a cursor that must not wait: an open transaction is skipped, and remembered until it is decided."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._open: list[Frame] = []

    def of(self, frame: Frame) -> str:
        outcome = self._outcomes.of(frame)
        if outcome == OPEN:
            self._open.append(frame)
            return ABORTED
        return outcome

    def decided(self) -> list[Frame]:
        """The skipped frames whose transaction has committed since."""
        outcomes = [(frame, self._outcomes.of(frame)) for frame in self._open]
        self._open = [frame for frame, outcome in outcomes if outcome == OPEN]
        return [frame for frame, outcome in outcomes if outcome == COMMITTED]
