"""Committed offsets: an internal compacted topic, folded into the latest per group and partition.

An offset sent in a transaction counts from the commit on. A reader never waits for one that is still open: the group makes
sure that it cannot commit any more once another member has taken over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.schema import schema
from headrace.log.assignment import TopicPartition
from headrace.log.cursor import ABORTED, COMMITTED, OPEN, Cursor, Limits, Outcomes
from headrace.log.frame import Frame
from headrace.log.partition import Partition
from headrace.log.topic import Topic, TopicConfig
from headrace.log.transactions import Transactions
from headrace.log.writers import Author

TOPIC = Topic(
    "__offsets", partitions=1, key=("group", "topic", "partition"), time="committed_at", id="offsets",
    columns=schema("group string, topic string, partition int, topic_id string, offset bigint, metadata string, "
                   "committed_at timestamp, generation bigint"),
    # Small segments: what is in closed ones is compacted, so that a new process has little to read.
    config=TopicConfig().with_settings({"cleanup.policy": "compact", "segment.bytes": 1024 * 1024}),
)  # fmt: skip
# Half of how long a tombstone stays at least: what was not looked at for longer may have missed one.
_STALE = TOPIC.config.delete_retention_ms * 1000 // 2
_COLUMNS = ("group", "topic", "partition", "topic_id", "offset", "metadata", "committed_at", "generation", "_tombstone", "_offset")


class Committed(NamedTuple):
    """A committed offset: the next one to process. `topic_id` tells a topic from one of the same name before it."""

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
        """What a group has committed, as of now."""
        self._refresh()
        found = [(place, committed) for (name, place), (committed, _) in self._latest.items() if name == group]
        return {place: committed for place, committed in sorted(found) if committed is not None}

    def settled(self, group: str) -> dict[TopicPartition, Committed]:
        """What a group has committed, with what a member wrote and died before it was durable.

        Whoever takes over must see it: the sync of any later commit would make it count after all, and its records twice.
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
        """Take back what a group has committed for some partitions; durable when this returns."""
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
        # By group and partition: the offset, None if it was forgotten, and where in the topic that is said.
        self._latest: dict[tuple[str, TopicPartition], tuple[Committed | None, int]] = {}
        self._refreshed_at = self._clock.now()

    def _refresh(self) -> None:
        with self._guard:
            if self._clock.now() - self._refreshed_at > _STALE:
                self._begin()
            self._refreshed_at = self._clock.now()
            for frame in self._outcomes.decided():
                cursor = Cursor(self._partition, frame.base)
                while batches := cursor.read(Limits(), _COLUMNS, until=frame.next):
                    self._learn(batches)
            while batches := self._cursor.read(Limits(), _COLUMNS):
                self._learn(batches)

    def _learn(self, batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            times = batch.column("committed_at").cast(pa.int64())
            columns = [times if name == "committed_at" else batch.column(name) for name in _COLUMNS]
            for group, topic, index, topic_id, offset, metadata, committed_at, generation, gone, place in zip(
                *(column.to_pylist() for column in columns), strict=True
            ):
                key = (group, (topic, index))
                # The order is that of the topic, in which compaction sees it too: a late decision does not overtake.
                if key not in self._latest or place > self._latest[key][1]:
                    committed = None if gone else Committed(topic_id, offset, metadata, committed_at, generation)
                    self._latest[key] = (committed, place)


class _PassingOpen:
    """Outcomes for a cursor that must not wait: an open transaction is passed over, and remembered until it is decided."""

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
        """The frames passed over before whose transaction has committed since."""
        outcomes = [(frame, self._outcomes.of(frame)) for frame in self._open]
        self._open = [frame for frame, outcome in outcomes if outcome == OPEN]
        return [frame for frame, outcome in outcomes if outcome == COMMITTED]
