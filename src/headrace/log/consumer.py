"""Consumers that read topics as they grow: many independent readers, each with its own position."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self

import pyarrow as pa

from headrace.core.clock import to_microseconds
from headrace.core.durations import Duration, duration
from headrace.core.errors import LogError, SettingsError
from headrace.log.bell import Watch, wait
from headrace.log.errors import UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits, offset_for_time, out_of_range
from headrace.log.files.partition import Partition
from headrace.log.groups.assignment import TopicPartition
from headrace.log.storage import Storage
from headrace.log.transactions import Transactions

Place = str | int | datetime
Start = Place | Mapping[int, int]

# An append wakes a waiting reader. Other changes (a topic that grows, a heartbeat that is due) are noticed after this long.
_LONGEST_WAIT = 0.05


class Consumer:
    """Pulls records from partitions. A slow consumer delays no other process: it has its own cursors and no part in the writers' work.

    >>> import tempfile
    >>> from headrace import Log
    >>> log = Log(tempfile.mkdtemp())
    >>> _ = log.create_topic("clicks", schema="url string")
    >>> with log.producer() as producer:
    ...     _ = producer.send("clicks", {"url": "/"})
    >>> with log.consumer("clicks", start="beginning") as consumer:
    ...     consumer.poll()["url"].to_pylist()
    ['/']
    """

    def __init__(self, storage: Storage, *, isolation: str = "read_committed") -> None:
        if isolation not in ("read_committed", "read_uncommitted"):
            raise SettingsError(f"isolation={isolation!r} is not known", hint='use "read_committed" or "read_uncommitted"')
        self._storage = storage
        self._outcomes = storage.transactions if isolation == "read_committed" else None
        self._cursors: dict[TopicPartition, Cursor] = {}
        self._followed: dict[str, int] = {}
        self._turn = 0
        self._closed = False

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions this consumer reads."""
        return sorted(self._cursors)

    def follow(self, topic: str, start: Start = "beginning") -> None:
        """Read a whole topic from `start`; partitions that it gets later are read from their beginning."""
        count = self._storage.topic(topic).partitions
        self.assign([(topic, index) for index in range(count)], start)
        self._followed[topic] = count

    def assign(self, partitions: Iterable[TopicPartition], start: Start = "beginning") -> None:
        """Read these partitions in addition to the present ones, each from `start`: "beginning", "end", an offset or a time.

        `start` may also map partitions to offsets, such as a snapshot's `next_offsets`; the others start at the beginning.
        """
        for topic, index in partitions:
            partition = self._partition(topic, index)
            place = start.get(index, "beginning") if isinstance(start, Mapping) else start
            self._cursors[topic, index] = Cursor(partition, place_of(partition, place, self._outcomes), outcomes=self._outcomes)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions."""
        for place in partitions:
            self._cursors.pop(place, None)

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record from this partition."""
        return self._cursor(topic, partition).offset

    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record, for each partition."""
        return {place: cursor.offset for place, cursor in self._cursors.items()}

    def seek(self, place: Place, *, topic: str | None = None, partition: int | None = None) -> None:
        """Continue from `place` in all partitions, in those of a topic, or in one; an offset must be one that the log has."""
        chosen = [c for (t, p), c in self._cursors.items() if topic in (None, t) and partition in (None, p)]
        if not chosen:
            raise LogError(f"this consumer reads no partition {partition} of topic {topic!r}", hint=f"it reads {self.assignment}")
        for cursor, offset in [(cursor, place_of(cursor.partition, place, self._outcomes)) for cursor in chosen]:
            cursor.seek(offset)

    def poll(
        self, *, max_rows: int = 100_000, max_bytes: int = 64 * 1024 * 1024, timeout: Duration = "1s", columns: Sequence[str] | None = None
    ) -> pa.Table | None:
        """The next records of any of its topics, in the order of each partition; None if none arrives within `timeout`.

        Uses at most `max_bytes` of memory and one more record batch; without compression it maps the files and uses none.
        """
        if self._closed:
            raise LogError("this consumer is closed", hint="make a new one with log.consumer()")
        wanted = tuple(columns) if columns is not None else None
        deadline = time.monotonic() + duration(timeout).total_seconds()
        watches: list[Watch] | None = None
        while True:
            self.before_poll()
            batches = self._read(ReadLimits(max_rows, max_bytes), wanted)
            if batches:
                return _together(batches)
            rest = deadline - time.monotonic()
            if rest <= 0:
                return None
            if watches is not None:
                wait(watches, min(rest, _LONGEST_WAIT))
            watches = self.watches()

    def before_poll(self) -> None:
        """Called before each look at the log, to take up new partitions. A member of a group keeps its membership here instead."""
        for topic, known in self._followed.items():
            # The cursors report a deleted topic.
            with suppress(UnknownTopic):
                count = self._storage.topic(topic).partitions
                if count > known:
                    self.assign([(topic, index) for index in range(known, count)])
                    self._followed[topic] = count

    def watches(self) -> list[Watch]:
        """The words that change when a poll may find new records."""
        watches = [cursor.partition.watch() for cursor in self._cursors.values()]
        return [*watches, self._storage.transactions.watch()] if self._outcomes else watches

    def lag(self) -> dict[TopicPartition, int]:
        """The number of offsets by which each partition is ahead of this reader."""
        return {place: max(0, cursor.partition.state().visible - cursor.offset) for place, cursor in self._cursors.items()}

    def close(self) -> None:
        """Stop reading. Nothing is committed."""
        self._closed = True
        self._cursors.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _read(self, limits: ReadLimits, columns: tuple[str, ...] | None) -> list[pa.RecordBatch]:
        before = self.positions()
        try:
            return self._read_in_turn(limits, columns)
        except BaseException:
            # Records of a failed poll were not returned: none of its partitions has moved on.
            for place, offset in before.items():
                self._cursors[place] = Cursor(self._cursors[place].partition, offset, outcomes=self._outcomes)
            raise

    def _read_in_turn(self, limits: ReadLimits, columns: tuple[str, ...] | None) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        places = sorted(self._cursors)
        rows, size = limits.rows, limits.bytes
        # Start with a different partition each time, so that a busy one cannot starve the others.
        self._turn += 1
        found: list[pa.RecordBatch] = []
        for number in range(len(places)):
            rows -= sum(batch.num_rows for batch in found)
            size -= sum(batch.nbytes for batch in found)
            if rows <= 0 or size <= 0:
                break
            found = self._cursors[places[(self._turn + number) % len(places)]].read(ReadLimits(rows, size), columns)
            batches += found
        return batches

    def _cursor(self, topic: str, partition: int) -> Cursor:
        if (topic, partition) not in self._cursors:
            raise LogError(f"this consumer does not read partition {partition} of topic {topic!r}", hint=f"it reads {self.assignment}")
        return self._cursors[topic, partition]

    def _partition(self, topic: str, index: int) -> Partition:
        return self._storage.partition(self._storage.topic(topic), index)


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    """One table of batches whose topics may have different columns."""
    if all(batch.schema is batches[0].schema or batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")


def place_of(partition: Partition, place: Place, transactions: Transactions | None) -> int:
    """The offset that "beginning", "end", an offset or a time stands for. A time after every record stands for the end.

    With `transactions`, the end is before the first open transaction: its records arrive when it is committed.
    """
    state = partition.state()
    if place == "beginning":
        return state.start
    if place == "end" or isinstance(place, datetime):
        found = None if isinstance(place, str) else offset_for_time(partition, to_microseconds(place))
        end = state.visible if transactions is None else max(state.start, transactions.stable_end(partition))
        return end if found is None else found
    if isinstance(place, str):
        raise SettingsError(f"{place!r} is not a place in a topic", hint='give "beginning", "end", an offset or a datetime')
    if not state.start <= place <= state.visible:
        raise out_of_range(partition, place, state)
    return place
