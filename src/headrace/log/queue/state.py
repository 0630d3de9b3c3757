"""The state of a queue's messages, folded from an internal compacted topic that every process appends to under the queue's lock.

A message has a row from its first delivery until it is done. A partition has a row with the position of its first deliveries: every message
before that position without a row of its own is done. Rows are states, not changes, so that compaction may drop all but the last.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.columns.schema import schema
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.log.files.partition import Partition
from headrace.log.files.writers import Author
from headrace.log.topic import Topic, TopicConfig

PREFIX = "__queue."
_SCHEMA = schema(
    "id string, partition int, offset bigint, deliveries int, visible_at bigint, lease bigint, reason string, epoch bigint, "
    "dead bigint, expired bigint"
)
_ROW = pa.schema([*_SCHEMA, pa.field("_tombstone", pa.bool_())])
_NAMES = tuple(_ROW.names)
_TOTALS = "totals"

Place = tuple[int, int]


class Unacknowledged(NamedTuple):
    """A message that was delivered and is not done: it is visible again at a time, and held by a lease (0: by none).

    With an epoch, it is on its way to the dead letters.
    """

    deliveries: int
    visible_at: int
    lease: int = 0
    reason: str = ""
    epoch: int = 0


class Totals(NamedTuple):
    """The number of dead letters, the number of messages that vanished with their records, and the last epoch of dead letters."""

    dead: int = 0
    expired: int = 0
    epoch: int = 0


def state_topic(topic: Topic, name: str) -> Topic:
    """The topic with the state of the queue `name` on a topic: each has its own, which goes when the topic is replaced by another of that
    name."""
    return Topic(
        f"{state_prefix(topic)}{name}", partitions=1, columns=_SCHEMA, key=("id",), id=f"{topic.id}-{name}",
        config=TopicConfig().with_settings({"cleanup.policy": "compact", "segment.bytes": 4 * 1024 * 1024}),
    )  # fmt: skip


def state_prefix(topic: Topic) -> str:
    """The prefix of the topics with the state of a topic's queues."""
    return f"{PREFIX}{topic.name}.{topic.id[:8]}."


class StateChange:
    """Rows to append together: all of them take effect, or none."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.expired = 0

    def hold(self, place: Place, held: Unacknowledged) -> None:
        self.rows.append({"id": f"{place[0]}/{place[1]}", "partition": place[0], "offset": place[1], **held._asdict(), "_tombstone": False})

    def finish(self, place: Place) -> None:
        self.rows.append({"id": f"{place[0]}/{place[1]}", "partition": place[0], "offset": place[1], "_tombstone": True})

    def vanish(self, place: Place) -> None:
        """Record that the message's record was removed from its topic."""
        self.finish(place)
        self.expired += 1

    def advance(self, partition: int, offset: int) -> None:
        """Record that first deliveries of a partition continue at `offset`."""
        self.rows.append({"id": str(partition), "partition": partition, "offset": offset, "_tombstone": False})

    def total(self, totals: Totals) -> None:
        self.rows.append({"id": _TOTALS, **totals._asdict(), "_tombstone": False})


class QueueState:
    """One process's copy of a queue's state; used under the queue's lock, after a `refresh`."""

    def __init__(self, partition: Partition, clock: Clock) -> None:
        self.partition = partition
        self._clock = clock
        # A process that slept for longer might miss the removal of a row: compaction keeps the tombstone for this long only.
        self._trusted = partition.topic.config.delete_retention_ms * 1000 // 2
        self.forget()

    def forget(self) -> None:
        """Start over from the topic."""
        self._cursor = Cursor(self.partition, 0)
        self._folded_at = self._clock.now()
        self._order: list[tuple[int, Place]] = []
        self.dying: set[Place] = set()
        self.frontiers: dict[int, int] = {}
        self.held: dict[Place, Unacknowledged] = {}
        self.totals = Totals()

    def refresh(self) -> None:
        """Apply the changes of other processes."""
        now = self._clock.now()
        if now - self._folded_at > self._trusted:
            self.forget()
        self._folded_at = now
        try:
            while batches := self._cursor.read(ReadLimits(), _NAMES):
                for batch in batches:
                    for row in batch.to_pylist():
                        self._fold(row)
        except BaseException:
            # The cursor may be ahead of what was applied.
            self.forget()
            raise

    def append(self, change: StateChange, *, durable: bool = False) -> None:
        """Store a change; other processes see it at once, and it survives a failure of the machine if it is durable."""
        if change.expired:
            change.total(self.totals._replace(expired=self.totals.expired + change.expired))
        if not change.rows:
            return
        layout, now = self.partition.layout, self._clock.now()
        table = pa.Table.from_pylist(change.rows, _ROW)
        self.partition.append([layout.stored(layout.arrange(table, now), now)], Author(), durable=False)
        if durable:
            self.partition.sync()
        self.refresh()

    def due(self, now: int, limit: int) -> list[Place]:
        """Held messages that are due, the longest due first; the caller changes each now, or puts it back."""
        found: list[Place] = []
        while self._order and self._order[0][0] <= now and len(found) < limit:
            visible_at, place = heapq.heappop(self._order)
            if place in self.held and self.held[place].visible_at == visible_at and not self.held[place].epoch:
                found.append(place)
        return found

    def put_back(self, places: Iterable[Place]) -> None:
        for place in places:
            heapq.heappush(self._order, (self.held[place].visible_at, place))

    def next_due(self) -> int | None:
        """The earliest moment at which the next message may be due."""
        return self._order[0][0] if self._order else None

    def _fold(self, row: dict[str, Any]) -> None:
        place = (row["partition"], row["offset"])
        if row["id"] == _TOTALS:
            self.totals = Totals(row["dead"], row["expired"], row["epoch"])
        elif "/" not in row["id"]:
            self.frontiers[row["partition"]] = row["offset"]
        elif row["_tombstone"]:
            self.held.pop(place, None)
            self.dying.discard(place)
        else:
            held = self.held[place] = Unacknowledged(row["deliveries"], row["visible_at"], row["lease"], row["reason"], row["epoch"])
            if held.epoch:
                self.dying.add(place)
            else:
                self.put_back([place])
