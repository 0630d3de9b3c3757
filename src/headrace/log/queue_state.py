"""Which messages of a queue are where, folded from an internal compacted topic that every process appends to under the queue's lock.

A message has a row from its first delivery until it is done; a partition has one for how far first deliveries have come. Everything
before that without a row of its own is done. Rows say how things are, not how they changed, so compaction may drop all but the last.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.schema import schema
from headrace.log.cursor import Cursor, Limits
from headrace.log.partition import Partition
from headrace.log.topic import Topic, TopicConfig
from headrace.log.writers import Author

PREFIX = "__queue."
_SCHEMA = schema(
    "id string, partition int, offset bigint, deliveries int, visible_at bigint, lease bigint, reason string, epoch bigint, "
    "dead bigint, expired bigint"
)
_ROW = pa.schema([*_SCHEMA, pa.field("_tombstone", pa.bool_())])
_NAMES = tuple(_ROW.names)
_TOTALS = "totals"

Place = tuple[int, int]


class Held(NamedTuple):
    """A message that was delivered and is not done: again visible at a time, in the hands of a lease (0: nobody's).

    With an epoch it is on its way to the dead letters.
    """

    deliveries: int
    visible_at: int
    lease: int = 0
    reason: str = ""
    epoch: int = 0


class Totals(NamedTuple):
    """How many messages went to the dead letters, how many vanished with their records, and the last epoch of dead letters."""

    dead: int = 0
    expired: int = 0
    epoch: int = 0


def state_topic(topic: Topic, name: str) -> Topic:
    """Where the state of the queue `name` on a topic is kept: one topic for each, gone when its topic is another one of that name."""
    return Topic(
        f"{state_prefix(topic)}{name}", partitions=1, columns=_SCHEMA, key=("id",), id=f"{topic.id}-{name}",
        config=TopicConfig().with_settings({"cleanup.policy": "compact", "segment.bytes": 4 * 1024 * 1024}),
    )  # fmt: skip


def state_prefix(topic: Topic) -> str:
    """How the names of the topics begin that hold the state of a topic's queues."""
    return f"{PREFIX}{topic.name}.{topic.id[:8]}."


class Change:
    """Rows to append together: all of them take effect, or none."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.expired = 0

    def hold(self, place: Place, held: Held) -> None:
        self.rows.append({"id": f"{place[0]}/{place[1]}", "partition": place[0], "offset": place[1], **held._asdict(), "_tombstone": False})

    def finish(self, place: Place) -> None:
        self.rows.append({"id": f"{place[0]}/{place[1]}", "partition": place[0], "offset": place[1], "_tombstone": True})

    def vanish(self, place: Place) -> None:
        """The record of a message was removed from its topic."""
        self.finish(place)
        self.expired += 1

    def advance(self, partition: int, offset: int) -> None:
        """First deliveries of a partition go on at `offset`."""
        self.rows.append({"id": str(partition), "partition": partition, "offset": offset, "_tombstone": False})

    def total(self, totals: Totals) -> None:
        self.rows.append({"id": _TOTALS, **totals._asdict(), "_tombstone": False})


class QueueState:
    """What one process knows of a queue; used under the queue's lock, and brought in step with `refresh` first."""

    def __init__(self, partition: Partition, clock: Clock) -> None:
        self.partition = partition
        self._clock = clock
        # A process that slept for longer might miss a row's removal: compaction keeps that for as long as this, and then forgets it.
        self._trusted = partition.topic.config.delete_retention_ms * 1000 // 2
        self.forget()

    def forget(self) -> None:
        """Start over from the topic."""
        self._cursor = Cursor(self.partition, 0)
        self._folded_at = self._clock.now()
        self._order: list[tuple[int, Place]] = []
        self.dying: set[Place] = set()
        self.frontiers: dict[int, int] = {}
        self.held: dict[Place, Held] = {}
        self.totals = Totals()

    def refresh(self) -> None:
        """Take in what other processes did."""
        now = self._clock.now()
        if now - self._folded_at > self._trusted:
            self.forget()
        self._folded_at = now
        try:
            while batches := self._cursor.read(Limits(), _NAMES):
                for batch in batches:
                    for row in batch.to_pylist():
                        self._fold(row)
        except BaseException:
            # The cursor may be ahead of what was taken in.
            self.forget()
            raise

    def append(self, change: Change, *, durable: bool = False) -> None:
        """Make a change; other processes see it at once, and it outlives the machine if it is durable."""
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
        """Held messages whose time has come, the longest due first; to be changed now, or put back."""
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
        """When the next message may be due, at the earliest."""
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
            held = self.held[place] = Held(row["deliveries"], row["visible_at"], row["lease"], row["reason"], row["epoch"])
            if held.epoch:
                self.dying.add(place)
            else:
                self.put_back([place])
