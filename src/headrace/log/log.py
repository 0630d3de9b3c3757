"""The embedded log: a directory of topics that any number of processes on one machine use at once, with no server."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

import pyarrow as pa

from headrace.core.clock import Clock, SystemClock
from headrace.core.columns.schema import SchemaLike
from headrace.core.durations import Duration, duration
from headrace.core.errors import LogError, SettingsError
from headrace.core.files.disk import Disk, PosixDisk
from headrace.log import transactions
from headrace.log.catalog import TopicCatalog
from headrace.log.consumer import Consumer, Place, Start, place_of
from headrace.log.description import described
from headrace.log.errors import closed_log
from headrace.log.files import writers
from headrace.log.files.awake import Awake
from headrace.log.files.cursor import Cursor, ReadLimits, max_event_time, offset_for_time
from headrace.log.files.layout import BatchLayout
from headrace.log.files.partition import Appended, Partition
from headrace.log.files.writers import Author
from headrace.log.groups import listing as groups
from headrace.log.groups import offsets
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.consumer import GroupConsumer, Topics
from headrace.log.groups.group import Group
from headrace.log.groups.offsets import Offsets
from headrace.log.groups.settings import group_settings
from headrace.log.producer import FRAME_BYTES, Producer, pieces_of, settings_of
from headrace.log.queue.dead_letters import check_dead_letter_topic
from headrace.log.queue.queue import Queue, QueueSettings
from headrace.log.queue.state import QueueState, state_prefix, state_topic
from headrace.log.snapshot import Snapshot, snapshot_of
from headrace.log.topic import Topic, TopicConfig, check_name, topic_columns
from headrace.log.transactions import Transactions
from headrace.log.upkeep.holds import Holds
from headrace.log.upkeep.maintenance import Maintenance, PartitionReport, maintenance_lock
from headrace.log.upkeep.repair import RepairReport, repair
from headrace.log.upkeep.retention import Removed, delete_before


class Log:
    """Topics in one directory. It keeps files open: close it, or use it in a with-block, if a process opens many.

    >>> import tempfile; log = Log(tempfile.mkdtemp())
    >>> topic = log.create_topic("greetings", partitions=1)
    >>> with log.producer() as producer:
    ...     delivery = producer.send("greetings", b"hello")
    >>> log.read("greetings", columns=["value", "_offset"]).to_pylist()
    [{'value': b'hello', '_offset': 0}]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        transaction_timeout: timedelta = transactions.DEFAULT_TIMEOUT,
    ) -> None:
        self.path = Path(path)
        self.disk: Disk = disk or PosixDisk()
        self.clock: Clock = clock or SystemClock()
        self._locks_path = self.path / "locks"
        self._groups_path = self.path / "groups"
        self._holds = Holds(self.disk, self.path / "holds")
        try:
            self.disk.make_directory(self._locks_path)
        except (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise LogError(
                f"{self.path} cannot be a directory: {error.strerror}",
                why="a log is a directory of files that this process writes",
                hint="name another home: --home, HEADRACE_HOME, home in headrace.toml or hr.App(home=...)",
            ) from error
        self._catalog = TopicCatalog(self.disk, self.path / "topics", self.disk.lock(self._locks_path / "catalog"))
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._guard = threading.Lock()
        self._awake = Awake()
        self._closed = False
        self._transactions: Transactions | None = None
        self._offsets: Offsets | None = None
        self._transaction_timeout = transaction_timeout
        self.maintenance = Maintenance(lambda: self.transactions, self._holds)

    def close(self) -> None:
        """Close every file and stop background work. Producers and consumers of a closed log raise."""
        self.maintenance.close()
        with self._guard:
            self._closed, partitions = True, list(self._partitions.values())
            self._partitions.clear()
        for partition in partitions:
            partition.close()
        self._catalog.lock.rest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Topics

    def create_topic(  # noqa: PLR0913 - one option for each thing a topic is declared with
        self, name: str, *, partitions: int = 1, schema: SchemaLike | None = None, key: str | Sequence[str] = (), time: str | None = None,
        config: Mapping[str, int | str] | None = None, exist_ok: bool = False,
    ) -> Topic:  # fmt: skip
        """Create a topic. `key` and `time` name columns of its schema; `config` has Kafka's names.

        With `exist_ok`, an existing topic is returned if its columns, key and time are the same.
        """
        topic = Topic(
            name=name, partitions=partitions, columns=topic_columns(schema), key=(key,) if isinstance(key, str) else tuple(key), time=time,
            config=TopicConfig().with_settings(config or {}), created_at=self.clock.now(),
        )  # fmt: skip
        return self._catalog.create(topic, exist_ok=exist_ok)

    def topic(self, name: str) -> Topic:
        """A topic as it is declared now."""
        return self._catalog.topic(name)

    def topics(self, *, internal: bool = False) -> list[Topic]:
        """All topics, by name."""
        return [topic for topic in self._catalog.topics() if internal or not topic.internal]

    def alter_topic(
        self, name: str, *, partitions: int | None = None, config: Mapping[str, int | str] | None = None, schema: SchemaLike | None = None
    ) -> Topic:
        """Add partitions, change settings, or add columns at the end. Stored records stay as they are."""
        return self._catalog.alter(name, partitions, config or {}, schema)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records and queues. Its readers and writers get an error that says so."""
        with self._catalog.lock:
            topic = self.topic(name)
            if topic.internal:
                raise LogError(f"topic {name!r} belongs to the log itself", why="transactions and groups would lose their records")
            queues = [self.topic(other) for other in self._catalog.names() if other.startswith(state_prefix(topic))]
            for gone in (topic, *queues):
                self._bury(gone)
        self._catalog.sweep()

    def describe(self, name: str) -> dict[str, Any]:
        """A topic's declaration, and for each partition its offsets, bytes, segments and the latest event time of its newest records."""
        topic = self.topic(name)
        return described(topic, [self.partition(topic, index) for index in range(topic.partitions)])

    def partition(self, topic: Topic, index: int) -> Partition:
        """One partition of a topic, shared by all users in this process."""
        if not 0 <= index < topic.partitions:
            raise LogError(f"topic {topic.name!r} has no partition {index}", hint=f"it has {topic.partitions}, from 0 on")
        with self._guard:
            if self._closed:
                raise closed_log(topic.name)
            found = self._partitions.get((topic.id, index))
            if found is None or found.topic is not topic:
                found = Partition(self.disk, self._catalog.directory(topic.name, index), topic, index, self.clock)
                found.on_roll, found.on_open = self.maintenance.soon, self._awake.opened
                self._partitions[topic.id, index] = found
        return found

    # Writing

    def producer(  # noqa: PLR0913 - one option for each thing that may differ
        self, *, acks: str | int = "all", linger: Duration | None = "5ms", batch_bytes: int = FRAME_BYTES,
        buffer_memory: int = 32 * 1024 * 1024, retries: int = 3, transactional_id: str | None = None,
    ) -> Producer:  # fmt: skip
        """A producer: with `acks="all"` a record is on disk before it is acknowledged, with "1" it survives the process only.

        Records wait for others as long as `linger`, or until they make `batch_bytes`; at most `buffer_memory` bytes wait. With
        `transactional_id`, records can be sent in transactions.
        """
        more = {"batch_bytes": batch_bytes, "buffer_memory": buffer_memory, "retries": retries, "transactional_id": transactional_id}
        return Producer(self, settings_of(acks, linger, **more))

    def append_epoch(  # noqa: PLR0913 - what is stored, whose it is, and where it goes
        self, topic: str, records: pa.Table, *, writer: str, epoch: int, partition: int | None = None, generation: int = 0,
        passing: bool = False,
    ) -> list[Appended]:  # fmt: skip
        """Store the records that a writer made in an epoch, once: an epoch that is already stored is skipped. Durable when this returns.

        A `passing` writer is forgotten a week after its last append.

        Each partition stores its part of the epoch as a whole or not at all; the epochs of a writer only increase. With `partition`, all
        records go there; otherwise each goes to the partition of its key.
        """
        declared = self.topic(topic)
        layout, now = BatchLayout(declared), self.clock.now()
        batch = layout.arrange(records, now)
        parts = layout.split(batch, 0) if partition is None else [(partition, batch, None)]
        author = Author(_writer(writer, passing), generation, epoch)
        return [self.partition(declared, index).append([layout.stored(piece, now) for piece in pieces_of(part)], author, durable=True)
                for index, part, _ in parts if part.num_rows]  # fmt: skip

    def last_epochs(self, topic: str, writer: str, passing: bool = False) -> dict[int, int | None]:
        """The last epoch of a writer that each partition has, None where it has none."""
        declared = self.topic(topic)
        return {index: self.partition(declared, index).last_sequence(_writer(writer, passing)) for index in range(declared.partitions)}

    # Reading

    @overload
    def consumer(
        self, topics: Sequence[str] | str, *, group: None = None, start: Start = "beginning", isolation: str = "read_committed"
    ) -> Consumer: ...

    @overload
    def consumer(
        self, topics: Topics, *, group: str, start: Place = "beginning", isolation: str = "read_committed", **settings: Any
    ) -> GroupConsumer: ...

    def consumer(
        self, topics: Any, *, group: str | None = None, start: Start = "beginning", isolation: str = "read_committed", **settings: Any
    ) -> Consumer:
        """A reader of whole topics from `start` on: "beginning", "end", an offset, a time, or an offset for each partition.

        With `group` it shares the topics with the other members, and resumes from the offsets that the group has committed. Its
        settings are `assignment`, `auto_commit`, `commit_interval`, `session_timeout`, `heartbeat_interval`, `instance`, `on_assigned`,
        `on_revoked` and `on_lost` (see `GroupSettings`); topics may be a pattern (`re.compile("orders-.*")`).
        """
        if group is not None:
            if isinstance(start, Mapping):
                raise SettingsError("members of a group cannot start at given offsets", hint="commit them first, or read without group=")
            return GroupConsumer(self, group, topics, group_settings(start=start, **settings), isolation=isolation)
        if settings:
            raise SettingsError(f"{next(iter(settings))!r} is a setting of a group's members", hint='give group="..." too')
        consumer = Consumer(self, isolation=isolation)
        for name in [topics] if isinstance(topics, str) else topics:
            consumer.follow(name, start)
        return consumer

    def read(
        self,
        topic: str,
        *,
        columns: Sequence[str] | None = None,
        start: Place = "beginning",
        partition: int | None = None,
        isolation: str = "read_committed",
    ) -> pa.Table:
        """Everything that a topic has now, as an Arrow table: its columns, and `_partition`, `_offset`, `_time`.

        `columns` may also name `_key`, `_headers`, `_tombstone`, `_appended_at` (when the record was stored) and `_sequence`: the epoch of
        the job that wrote the record, or 0 once compaction has rewritten it.
        """
        declared = self.topic(topic)
        outcomes = self.transactions if isolation == "read_committed" else None
        wanted = tuple(columns) if columns is not None else None
        batches = []
        for index in range(declared.partitions) if partition is None else [partition]:
            place = self.partition(declared, index)
            end = place.state().visible
            cursor = Cursor(place, place_of(place, start, outcomes), outcomes=outcomes)
            while found := cursor.read(ReadLimits(), wanted, until=end):
                batches += found
        layout = BatchLayout(declared)
        return pa.Table.from_batches(batches, layout.schema(wanted if wanted is not None else layout.visible_columns()))

    def offsets_for_time(self, topic: str, moment: int) -> dict[int, int | None]:
        """For each partition the first offset with this event time (microseconds since 1970) or a later one."""
        declared = self.topic(topic)
        return {index: offset_for_time(self.partition(declared, index), moment) for index in range(declared.partitions)}

    def max_event_time(self, topic: str, partition: int, first: int, last: int) -> int | None:
        """The latest event time of an offset range, from the index."""
        return max_event_time(self.partition(self.topic(topic), partition), first, last)

    def snapshot(self, topic: str) -> Snapshot:
        """The latest record of each key, without deleted keys, and the offsets from which to read on.

        A consumer with `start=snapshot.next_offsets` reads everything after it: no gap, nothing twice.
        """
        declared = self.topic(topic)
        outcomes = self.transactions
        parts = [snapshot_of(self.partition(declared, index), outcomes) for index in range(declared.partitions)]
        layout = BatchLayout(declared)
        table = pa.Table.from_batches([batch for batches, _ in parts for batch in batches], layout.schema(layout.visible_columns()))
        return Snapshot(table, {index: following for index, (_, following) in enumerate(parts)})

    @property
    def transactions(self) -> Transactions:
        """The outcomes of this log's transactions."""
        if self._transactions is None:
            partition = self.partition(self._catalog.create(transactions.TOPIC, exist_ok=True), 0)
            self._transactions = Transactions(self.disk, self._locks_path, partition, self.clock, self._transaction_timeout)
        return self._transactions

    def queue(
        self, topic: str, *, name: str, visibility_timeout: Duration = "30s", max_deliveries: int = 5, dead_letter: str | None = None
    ) -> Queue:
        """A topic as a queue: each message goes to one of the consumers with this `name`, until it is acknowledged.

        After `max_deliveries` it goes to `dead_letter`, by default `<topic>.dead`, which is created with the same columns.

        >>> import tempfile; log = Log(tempfile.mkdtemp())
        >>> jobs = log.create_topic("jobs")
        >>> with log.producer() as producer:
        ...     delivery = producer.send("jobs", b"resize 7.png")
        >>> [message] = log.queue("jobs", name="workers").receive(max=10)
        >>> message.value, message.deliveries
        (b'resize 7.png', 1)
        >>> message.ack()
        """
        source = self.topic(topic)
        settings = QueueSettings(topic, name, duration(visibility_timeout), max_deliveries, dead_letter or f"{topic}.dead")
        dead = replace(
            source, name=settings.dead_letter, partitions=1, id=uuid.uuid4().hex, config=TopicConfig(), created_at=self.clock.now()
        )
        present = self.topic(dead.name) if dead.name in self._catalog else self._catalog.create(dead, exist_ok=True)
        check_dead_letter_topic(present, source)
        partition = self.partition(self._catalog.create(state_topic(source, name), exist_ok=True), 0)
        return Queue(self, QueueState(partition, self.clock), settings)

    # Upkeep

    def maintain(self, topic: str | None = None, *, force: bool = False) -> list[PartitionReport]:
        """Apply retention to a topic or to all, and compaction where enough is new; with `force`, compact whatever is new.

        The log does this by itself whenever a segment is closed. A partition on which it fails has its error in the report.
        """
        self._catalog.sweep()
        chosen = self.topics(internal=True) if topic is None else [self.topic(topic)]
        return [self._maintained(declared, index, force=force) for declared in chosen for index in range(declared.partitions)]

    def repair(self, topic: str, partition: int) -> RepairReport:
        """Drop the damaged records of a partition, so that the others can be read and written again after `CorruptLog`.

        The report lists the lost offsets; they are not used again. Damaged files stay next to the new ones as `*.corrupt`.
        """
        return repair(self.partition(self.topic(topic), partition))

    def delete_records(self, topic: str, partition: int, before: int) -> Removed:
        """Make the records of a partition before an offset unreadable for good; their bytes are removed with their whole segment."""
        chosen = self.partition(self.topic(topic), partition)
        with maintenance_lock(chosen):
            return delete_before(chosen, before)

    def hold(self, holder: str, offsets: Mapping[str, Mapping[int, int]], witness: Path) -> None:
        """Protect records that a reader may read again from compaction: from these offsets on, by topic id and partition.

        The hold lasts until it is moved or released, or until the file `witness` is removed. Once a new hold is in place, no earlier
        compaction is still under way.
        """
        known = self.holds(holder)
        self._holds.put(holder, offsets, witness)
        for topic in [] if known else self.topics(internal=True):
            for index in range(topic.partitions if topic.id in offsets and topic.config.compacted else 0):
                with maintenance_lock(self.partition(topic, index)):
                    pass

    def holds(self, holder: str) -> bool:
        """Whether a reader has a hold."""
        return holder in self._holds

    def release(self, holder: str) -> None:
        """Release the hold of a reader, so that compaction may proceed."""
        self._holds.release(holder)

    # Groups

    def group_names(self) -> list[str]:
        """Every consumer group that has a member or a committed offset."""
        joined = self.disk.list(self._groups_path) if self.disk.exists(self._groups_path) else []
        return sorted({name for name in joined if self.group(name).exists} | set(self.offsets.groups()))

    def describe_group(self, name: str) -> dict[str, Any]:
        """A group's members and generation, and for each partition its reader, committed offset, end and lag.

        `lag` counts offsets; `lag_seconds` is how far event time has advanced since the last committed record.
        """
        return groups.describe(self, name)

    def seek_group(self, name: str, topic: str, place: Place, partition: int | None = None) -> dict[TopicPartition, int]:
        """Move a group to `place` in a topic, or in one partition; only while it has no live members."""
        return groups.seek(self, name, topic, place, partition)

    def reset_group(self, name: str, topic: str | None = None) -> None:
        """Forget what a group has committed, in all topics or in one; only while it has no live members."""
        groups.reset(self, name, topic)

    def delete_group(self, name: str) -> None:
        """Forget a group and all it has committed; only while it has no live members."""
        groups.delete(self, name)

    def group(self, name: str) -> Group:
        """The shared state of a consumer group."""
        check_name(name, "group")
        return Group(self.disk, self._groups_path, self._locks_path / "groups", name)

    @property
    def offsets(self) -> Offsets:
        """The committed offsets of all groups."""
        if self._offsets is None:
            topic = self._catalog.create(offsets.TOPIC, exist_ok=True)
            self._offsets = Offsets(self.partition(topic, 0), self.transactions, self.clock)
        return self._offsets

    def _bury(self, topic: Topic) -> None:
        """Remove a topic from the catalog, under its lock; its files may then be removed."""
        for index in range(topic.partitions):
            self.partition(topic, index).mark_deleted()
        self._catalog.bury(topic)
        with self._guard:
            for index in range(topic.partitions):
                self._partitions.pop((topic.id, index), None)

    def _maintained(self, topic: Topic, index: int, *, force: bool) -> PartitionReport:
        try:
            return self.maintenance.run(self.partition(topic, index), force=force)
        except LogError as error:
            return PartitionReport(topic.name, index, error=error)


def _writer(name: str, passing: bool) -> int:
    return writers.passing(name) if passing else writers.named(name)
