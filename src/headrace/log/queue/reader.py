"""The records behind the messages of a queue: the next ones of a partition, or the one at a given place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.log.bell import Watch
from headrace.log.files.cursor import Cursor, ReadLimits
from headrace.log.queue.state import Place
from headrace.log.storage import Storage
from headrace.log.topic import Topic

# The number of records that a cursor skips before a lookup of its place is quicker.
_NEAR = 1_000

Row = Mapping[str, Any]


class Found(NamedTuple):
    """Records of a partition from the offset `first` on, and the offset after them."""

    rows: list[Row]
    first: int
    next: int


class QueueReader:
    """Reads committed records of one topic, with every column of a message."""

    def __init__(self, storage: Storage, topic: str) -> None:
        self._storage = storage
        self._name = topic
        self._fronts: dict[int, Cursor] = {}
        self._backs: dict[int, Cursor] = {}

    @property
    def topic(self) -> Topic:
        """The topic, as it is now."""
        return self._storage.topic(self._name)

    def ends(self) -> list[tuple[int, int]]:
        """The first and the next offset of each partition."""
        topic = self.topic
        states = [self._storage.partition(topic, index).state() for index in range(topic.partitions)]
        return [(state.start, state.visible) for state in states]

    def watches(self) -> list[Watch]:
        """The words that change with every record that can be received."""
        topic = self.topic
        partitions = [self._storage.partition(topic, index).watch() for index in range(topic.partitions)]
        return [*partitions, self._storage.transactions.watch()]

    def following(self, index: int, offset: int, limit: int) -> Found:
        """Up to `limit` records of a partition from `offset` on, or from its first one if that is later."""
        cursor = self._at(self._fronts, index, offset)
        first = cursor.offset
        return Found(self._read(cursor, limit, None), first, cursor.offset)

    def row(self, place: Place) -> Row | None:
        """The record at a place, None if it no longer exists."""
        index, offset = place
        cursor = self._at(self._backs, index, offset)
        rows = self._read(cursor, 1, offset + 1) if cursor.offset == offset else []
        return rows[0] if rows else None

    def _at(self, cursors: dict[int, Cursor], index: int, offset: int) -> Cursor:
        partition = self._storage.partition(self.topic, index)
        state = partition.state()
        offset = min(max(offset, state.start), state.visible)
        cursor = cursors.get(index)
        if cursor is None or cursor.partition is not partition:
            cursor = cursors[index] = Cursor(partition, offset, outcomes=self._storage.transactions)
        elif 0 <= offset - cursor.offset < _NEAR:
            cursor.offset = offset
        else:
            cursor.seek(offset)
        return cursor

    def _read(self, cursor: Cursor, limit: int, until: int | None) -> list[Row]:
        names = (*self.topic.columns.names, "_key", "_headers", "_tombstone", "_time", "_offset")
        return [row for batch in cursor.read(ReadLimits(rows=limit), names, until=until) for row in batch.to_pylist()]
