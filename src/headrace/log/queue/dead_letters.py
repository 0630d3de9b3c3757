"""The dead-letter topic of a queue: the same columns, and headers that say why and how often a message failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headrace.core.columns.schema import declared
from headrace.core.errors import SchemaError
from headrace.log.files import frame as frames
from headrace.log.files import writers
from headrace.log.files.layout import BatchLayout, stored_schema
from headrace.log.files.writers import Author
from headrace.log.queue.state import Place, Unacknowledged
from headrace.log.storage import Storage
from headrace.log.topic import Topic


class AlterableStorage(Storage, Protocol):
    """A log whose topics can be given more columns."""

    def alter_topic(self, name: str, *, schema: pa.Schema | None = None) -> Topic: ...


class Dead(NamedTuple):
    """A message and the history of its deliveries; `row` has its columns, key, time and headers."""

    place: Place
    held: Unacknowledged
    row: Mapping[str, Any]


class DeadLetterTopic:
    """Appends messages to the dead-letter topic, each batch once: batches have increasing epochs, which the queue stores."""

    def __init__(self, storage: AlterableStorage, topic: str, queue: str) -> None:
        self._storage = storage
        self._topic = topic
        self._writer = writers.named(f"dead letters of {queue}")
        self._queue = queue.encode()

    def append(self, source: Topic, messages: Sequence[Dead], epoch: int) -> None:
        """Store messages; durable when this returns. An epoch that is already stored is not stored again."""
        topic = self._storage.topic(self._topic)
        if not topic.columns.equals(source.columns):
            topic = self._storage.alter_topic(self._topic, schema=source.columns)
        layout, now = BatchLayout(topic), self._storage.clock.now()
        flags = frames.HEADERS | frames.TOMBSTONES | (0 if topic.key else frames.KEYS) | (0 if topic.time else frames.TIMES)
        rows = [{**dead.row, "_headers": self._headers(source, dead)} for dead in messages]
        # Not checked like a new record: it was accepted once, and must not be refused now for its size or its age.
        batch = pa.Table.from_pylist(rows, stored_schema(topic.columns, flags)).combine_chunks().to_batches()[0]
        for index, part, _ in layout.split(batch, 0):
            self._storage.partition(topic, index).append([layout.stored(part, now)], Author(self._writer, 0, epoch), durable=True)

    def _headers(self, source: Topic, dead: Dead) -> list[tuple[str, bytes]]:
        known = {
            "headrace.reason": dead.held.reason.encode() or b"visibility time-out",
            "headrace.queue": self._queue,
            "headrace.topic": source.name.encode(),
            "headrace.partition": b"%d" % dead.place[0],
            "headrace.offset": b"%d" % dead.place[1],
            "headrace.deliveries": b"%d" % dead.held.deliveries,
        }
        return [*(item for item in dead.row["_headers"] or () if item[0] not in known), *known.items()]


def check_dead_letter_topic(topic: Topic, source: Topic) -> None:
    """Refuse a topic that cannot store the messages of another."""
    if topic.name == source.name or list(topic.columns) != list(source.columns)[: len(topic.columns)] or topic.key != source.key:
        raise SchemaError(
            f"topic {topic.name!r} cannot store the dead letters of {source.name!r}",
            why=f"it needs the same columns and key: {declared(source.columns)}",
            hint="name another topic with dead_letter=; one that does not exist is created",
        )
