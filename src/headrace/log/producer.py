"""Producers of records: batched while they linger, stored once even if sent twice, in transactions if asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow as pa

from headrace.core.durations import Duration, duration
from headrace.core.errors import HeadraceError, LogError, SchemaError, SettingsError
from headrace.log.appender import Appender
from headrace.log.delivery import Delivery, DeliveryOutcome, OffsetRun
from headrace.log.errors import DiskFailed, TransactionState
from headrace.log.files.layout import BatchLayout, Rows
from headrace.log.files.partition import Appended
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.commits import commit_of
from headrace.log.groups.group import Claim, Membership, holding
from headrace.log.records import Buffer, Headers, Key, Moment, Value
from headrace.log.storage import Storage
from headrace.log.topic import Topic

FRAME_BYTES = 1024 * 1024
_MICROSECOND = timedelta(microseconds=1)
_MOST_SYNCS = 8
# The part of a batch that goes to one partition, with its row numbers.
Part: TypeAlias = tuple[int, pa.RecordBatch, Rows]


@dataclass(frozen=True)
class ProducerSettings:
    """The settings of a producer. `buffer_memory` bounds what waits to be sent; `send` flushes by itself when it is full.

    With `linger` 0 a record is sent at once, together with those that arrived while the previous one was being stored. With None it waits
    until a caller asks for it (`result`, `flush`, the end of the block) or its batch is full; no thread sends it.
    """

    acks: str = "all"
    linger: timedelta | None = timedelta(milliseconds=5)
    batch_bytes: int = FRAME_BYTES
    buffer_memory: int = 32 * 1024 * 1024
    retries: int = 3
    transactional_id: str | None = None

    def __post_init__(self) -> None:
        if self.acks not in ("all", "1"):
            raise SettingsError(
                f"acks={self.acks!r} is not known",
                hint='use "all" (durable) or "1" (written, survives a crash of the process but not of the machine)',
            )


class Producer:
    """Sends records to topics. Threads may share it; close it, or use it in a `with` block, so that no record stays unsent.

    At most `buffer_memory` bytes of text and binary wait, counting 64 more for each record and 8 for each number, plus one record for each
    thread.

    >>> import tempfile
    >>> from headrace import Log
    >>> log = Log(tempfile.mkdtemp())
    >>> _ = log.create_topic("clicks", schema="url string, user string", key="user")
    >>> with log.producer() as producer:
    ...     producer.send("clicks", {"url": "/", "user": "ada"}).result().offset
    0
    """

    def __init__(self, storage: Storage, settings: ProducerSettings) -> None:
        self._storage = storage
        self._settings = settings
        self._batch_bytes = settings.batch_bytes
        self._buffer_memory = settings.buffer_memory
        self._appender = Appender(
            storage, durable=settings.acks == "all", retries=settings.retries, transactional_id=settings.transactional_id
        )
        self._buffers: dict[str, Buffer] = {}
        self._buffered = 0
        # The first guards the buffers and is held briefly; the second is held while records are sent, so that order is kept.
        self._lock = threading.Lock()
        self._sending = threading.RLock()
        self._changed = threading.Condition(self._lock)
        # The first partition for records without a key: not all producers begin with the same one.
        self._spare = self._appender.writer
        self._failed: HeadraceError | None = None
        self._closed = False
        self._sender: threading.Thread | None = None
        self._syncing: ThreadPoolExecutor | None = None
        self._claims: list[Claim] = []

    def send(self, topic: str, value: Value, *, key: Key = None, time: Moment | None = None, headers: Headers = None) -> Delivery:
        """Send one record; a dict for a topic with columns, bytes or text for one without, None for a tombstone.

        A timestamp is a datetime or ISO 8601 text, and a number only where the topic declares its unit: `at timestamp(ms)`.

        Returns at once and stores the record in the background; `result()` of the delivery, `flush` and leaving the `with` block wait.
        """
        with self._lock:
            buffer = self._buffers.get(topic) or self._new_buffer(topic)
            delivery = Delivery(buffer.outcome, len(buffer.values))
            before = buffer.size
            self._buffered += buffer.add(value, key, time, headers)
            over = self._buffered >= self._buffer_memory
            if before < self._batch_bytes <= buffer.size:
                over = over or self._sender is None
                self._changed.notify()
        if over:
            self._send_buffers(None)
        return delivery

    def send_table(
        self, topic: str, records: pa.Table | pa.RecordBatch, *, key: pa.Array | None = None, time: pa.Array | None = None
    ) -> list[Appended]:
        """Send many records at once; returns their places when they are stored as `acks` asks.

        Of the records of each partition, all are stored or none.
        """
        self._refuse_closed()
        declared = self._storage.topic(topic)
        table = records if isinstance(records, pa.Table) else pa.Table.from_batches([records])
        table = _with_column(table, declared.key[0] if len(declared.key) == 1 else "_key", key)
        table = _with_column(table, declared.time or "_time", time)
        with self._sending:
            self._send_buffers([topic])
            batch = BatchLayout(declared).arrange(table, self._storage.clock.now())
            outcomes = self._append_all(declared, self._parts(declared, batch))
        failed = next((outcome for outcome in outcomes if isinstance(outcome, HeadraceError)), None)
        if failed is not None:
            raise failed
        return [outcome for outcome in outcomes if isinstance(outcome, Appended)]

    def flush(self) -> None:
        """Send lingering records, and raise the first error of any record sent since the last flush."""
        with self._sending:
            self._send_buffers(None)
            failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Flush and stop. An open transaction is aborted."""
        if self._closed:
            return
        try:
            if self._appender.in_transaction:
                self.abort_transaction()
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify()
            if self._sender is not None and self._sender is not threading.current_thread():
                self._sender.join()
            if self._syncing is not None:
                self._syncing.shutdown()

    def begin_transaction(self) -> None:
        """From now on, records take effect together at the commit, or never."""
        with self._sending:
            self._appender.begin()
            self._claims = []

    def commit_transaction(self) -> None:
        """Make everything sent in the transaction durable, then visible at once. If this raises, the transaction is aborted."""
        with self._sending:
            self._refuse_outside()
            try:
                self.flush()
                with holding(self._claims):
                    self._appender.commit()
            except HeadraceError:
                self._abort_quietly()
                raise

    def send_offsets(self, group: str | Membership, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit offsets of a group as part of the open transaction: they take effect if, and only if, its records do.

        With a consumer, its positions are committed unless others are given. If the consumer has lost one of these partitions by the
        commit, the commit raises `Fenced` and the transaction is aborted. With only a group's name, the commit checks nothing.
        """
        commit = commit_of(group, offsets)
        with self._sending:
            self._refuse_outside()
            if commit.offsets:
                self.send_table(self._storage.offsets.topic, commit.rows(self._storage))
            if not isinstance(group, str):
                self._claims.append(group.claim(commit.offsets))

    def abort_transaction(self) -> None:
        """Nothing sent in the transaction takes effect."""
        with self._sending:
            self._refuse_outside()
            with self._lock:
                for buffer in self._buffers.values():
                    self._buffered -= buffer.size
                    buffer.outcome.fail(len(buffer.values), TransactionState("the transaction was aborted before the record was sent"))
                self._buffers.clear()
            self._failed = None
            try:
                self._appender.abort()
            finally:
                self._appender.forget()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that commits at the end of the block, and aborts if the block raises."""
        self.begin_transaction()
        try:
            yield
        except BaseException:
            self._abort_quietly()
            raise
        self.commit_transaction()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _abort_quietly(self) -> None:
        """Abort after a failure and keep that failure's error; a transaction that cannot be aborted now times out."""
        if self._appender.in_transaction:
            with suppress(LogError):
                self.abort_transaction()

    def _new_buffer(self, topic: str) -> Buffer:
        self._refuse_closed()
        self._appender.refuse_outside()
        found = self._storage.topic(topic)
        buffer = self._buffers[topic] = Buffer(found, self._storage.clock.now(), DeliveryOutcome(lambda: self._send_now(topic, buffer)))
        if self._sender is None and self._settings.linger is not None:
            self._sender = threading.Thread(
                target=self._send_when_due, args=(self._settings.linger,), name="headrace-producer", daemon=True
            )
            self._sender.start()
        self._changed.notify()
        return buffer

    def _send_now(self, topic: str, buffer: Buffer) -> None:
        """Send a buffer that still waits; return when it is stored, whichever thread does it."""
        with self._sending:
            if self._buffers.get(topic) is buffer:
                self._send_buffers([topic])

    def _send_buffers(self, topics: Sequence[str] | None) -> None:
        with self._sending:
            with self._lock:
                names = list(self._buffers) if topics is None else [name for name in topics if name in self._buffers]
                taken = [(name, self._buffers.pop(name)) for name in names]
            for name, buffer in taken:
                if buffer.values:  # none if the first one was refused
                    self._send_buffer(name, buffer)
                with self._lock:
                    self._buffered -= buffer.size

    def _send_buffer(self, name: str, buffer: Buffer) -> None:
        runs: list[OffsetRun] = []
        errors: dict[int, HeadraceError] = {}
        try:
            topic = self._storage.topic(name)
            rows, batch = self._arranged(topic, buffer, errors)
            parts = self._parts(topic, batch)
            for (index, _, places), outcome in zip(parts, self._append_all(topic, parts), strict=True):
                numbers: Rows = places if rows is None else [rows[place] for place in places]
                if isinstance(outcome, Appended):
                    runs.append(OffsetRun(numbers, index, outcome.base))
                else:
                    errors |= dict.fromkeys(numbers, outcome)
        except (HeadraceError, OSError, MemoryError) as error:
            errors = dict.fromkeys(range(len(buffer.values)), _known(error, name)) | errors
        self._failed = self._failed or next(iter(errors.values()), None)
        buffer.outcome.finish(runs, errors)

    def _arranged(self, topic: Topic, buffer: Buffer, errors: dict[int, HeadraceError]) -> tuple[list[int] | None, pa.RecordBatch]:
        """The buffer as a batch. Records that do not fit the topic fail, and the others go on: their numbers, or None if all fit."""
        layout, now = BatchLayout(topic), self._storage.clock.now()
        try:
            return None, layout.arrange(buffer.batch(topic), now)
        except HeadraceError:
            good = []
            for number in range(len(buffer.values)):
                try:
                    layout.arrange(buffer.batch(topic, [number]), now)
                    good.append(number)
                except HeadraceError as error:
                    errors[number] = error
        table = buffer.batch(topic, good) if good else topic.columns.empty_table()
        return good, layout.arrange(table, now)

    def _parts(self, topic: Topic, batch: pa.RecordBatch) -> list[Part]:
        """A batch by partition, with the row numbers; records without a key go to one partition, those of the next batch to another."""
        if not batch.num_rows:
            return []
        self._spare += 1
        return list(BatchLayout(topic).split(batch, self._spare))

    def _append_all(self, topic: Topic, parts: Sequence[Part]) -> list[Appended | HeadraceError]:
        """Store each partition's part, or record why not; the failure of one does not affect the others."""

        def outcome(part: Part) -> Appended | HeadraceError:
            try:
                return self._append(topic, part[0], part[1])
            except (HeadraceError, OSError, MemoryError) as error:
                return _known(error, topic.name)

        if len(parts) == 1 or self._settings.acks != "all" or self._settings.linger is None or self._appender.in_transaction:
            return [outcome(part) for part in parts]
        if self._syncing is None:
            self._syncing = ThreadPoolExecutor(_MOST_SYNCS, thread_name_prefix="headrace-sync")
        # Each waits for the disk; together they wait about as long as one alone.
        return list(self._syncing.map(outcome, parts))

    def _append(self, topic: Topic, index: int, part: pa.RecordBatch) -> Appended:
        partition = self._storage.partition(topic, index)
        now = self._storage.clock.now()
        return self._appender.append(partition, [partition.layout.stored(piece, now) for piece in pieces_of(part)])

    def _send_when_due(self, linger: timedelta) -> None:
        while True:
            with self._changed:
                while not (due := self._due(linger // _MICROSECOND)) and not self._closed:
                    opened = [buffer.opened_at for buffer in self._buffers.values()]
                    rest = linger.total_seconds() - (self._storage.clock.now() - min(opened)) / 1_000_000 if opened else None
                    self._changed.wait(rest)
                if self._closed:
                    return
            self._send_buffers(due)

    def _due(self, linger: int) -> list[str]:
        """The topics whose records have lingered for that many microseconds, or fill a batch."""
        latest = self._storage.clock.now() - linger
        return [name for name, buffer in self._buffers.items() if buffer.opened_at <= latest or buffer.size >= self._batch_bytes]

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LogError("this producer is closed", hint="make a new one with log.producer()")

    def _refuse_outside(self) -> None:
        if not self._appender.in_transaction:
            raise TransactionState("no transaction is open", hint="call begin_transaction() first")


def pieces_of(batch: pa.RecordBatch, target: int = FRAME_BYTES) -> list[pa.RecordBatch]:
    """A batch in pieces of about one frame each."""
    count = -(-batch.nbytes // target)
    if count <= 1:
        return [batch]
    rows = -(-batch.num_rows // count)
    return [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]


def _known(error: Exception, topic: str) -> HeadraceError:
    return error if isinstance(error, HeadraceError) else DiskFailed(f"records for topic {topic!r} were not sent: {error}")


def settings_of(acks: str | int, linger: Duration | None, **others: Any) -> ProducerSettings:
    return ProducerSettings(acks=str(acks), linger=None if linger is None else duration(linger), **others)


def _with_column(table: pa.Table, name: str, column: pa.Array | None) -> pa.Table:
    if column is None:
        return table
    if name in table.column_names:
        raise SchemaError(f"column {name!r} is in the table and was also given as an argument", hint="give it once")
    if len(column) != table.num_rows:
        raise SchemaError(f"{len(column)} values for {name!r}, but the table has {table.num_rows} rows", hint="give one for each row")
    return table.append_column(name, column)
