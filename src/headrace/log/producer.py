"""Sending records: batched while they linger, stored once even if sent twice, in transactions if asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headrace.core.clock import to_microseconds
from headrace.core.durations import Duration, duration
from headrace.core.errors import HeadraceError, LogError, SchemaError, SettingsError
from headrace.core.schema import TIMESTAMP, ddl
from headrace.log import writers
from headrace.log.delivery import Delivery, Outcome
from headrace.log.errors import DiskFailed, RecordLost, TransactionState
from headrace.log.layout import HEADERS, Layout, Stored
from headrace.log.partition import Appended, Author, Partition
from headrace.log.storage import Storage
from headrace.log.topic import BYTES, Topic

FRAME_BYTES = 1024 * 1024
Value = bytes | str | Mapping[str, Any] | None
Key = bytes | str | int | tuple[Any, ...] | None


@dataclass(frozen=True)
class ProducerSettings:
    """How a producer sends. `buffer_memory` bounds what waits to be sent; `send` flushes by itself when it is full."""

    acks: str = "all"
    linger: timedelta = timedelta(milliseconds=5)
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


_USUAL = ProducerSettings()


class _Record(NamedTuple):
    value: Value
    key: Key
    time: int | None
    headers: Mapping[str, bytes] | None


@dataclass
class _Buffer:
    """Records of one topic that wait to be sent."""

    topic: Topic
    opened_at: int
    records: list[_Record] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    size: int = 0


class Producer:
    """Sends records to topics. Safe to share between threads; close it, or use it in a `with` block, so that nothing stays behind."""

    def __init__(self, storage: Storage, settings: ProducerSettings = _USUAL) -> None:
        self._storage = storage
        self._settings = settings
        self._buffers: dict[str, _Buffer] = {}
        self._buffered = 0
        self._changed = threading.Condition(threading.RLock())
        self._sending = threading.RLock()
        self._sequences: dict[tuple[str, int], int] = {}
        self._spare = 0
        self._failed: HeadraceError | None = None
        self._closed = False
        self._sender: threading.Thread | None = None
        self._transaction = 0
        self._touched: dict[tuple[str, int], Partition] = {}
        if settings.transactional_id is None:
            self._writer, self._generation = writers.drawn(), 0
        else:
            self._writer = writers.named(settings.transactional_id)
            self._generation = storage.transactions.begin_generation(self._writer)

    def send(
        self, topic: str, value: Value, *, key: Key = None, time: datetime | int | None = None, headers: Mapping[str, bytes] | None = None
    ) -> Delivery:
        """Send one record; a dict for a topic with columns, bytes or text for one without, None for a tombstone.

        Returns at once while records linger; `result()` of the delivery, `flush` and leaving the `with` block wait.
        """
        with self._changed:
            buffer = self._buffers.get(topic) or self._new_buffer(topic)
            _check(buffer.topic, value)
            number = len(buffer.records)
            buffer.records.append(_Record(value, key, None if time is None else to_microseconds(time), headers))
            size = _size(value)
            buffer.size += size
            self._buffered += size
            full = buffer.size >= self._settings.batch_bytes or self._buffered >= self._settings.buffer_memory
        delivery = Delivery(buffer.outcome, number)
        if self._settings.linger == timedelta(0):
            self._send_buffers([topic])
            if delivery.done() and number in buffer.outcome.errors:
                raise self._observed(buffer.outcome.errors[number])
        elif full:
            self._send_buffers([topic])
        return delivery

    def send_table(
        self, topic: str, records: pa.Table | pa.RecordBatch, *, key: pa.Array | None = None, time: pa.Array | None = None
    ) -> list[Appended]:
        """Send many records at once; returns where they are when they are stored as `acks` asks. All of one partition, or none."""
        declared = self._storage.topic(topic)
        extra = {"_key": key, "_time": time}
        table = records if isinstance(records, pa.Table) else pa.Table.from_batches([records])
        for name, column in extra.items():
            if column is not None:
                table = table.append_column(name, column)
        self._refuse_closed()
        with self._sending:
            self._send_buffers([topic])
            batch = Layout(declared).arrange(table, self._storage.clock.now())
            return [appended for appended, _ in self._store(declared, batch)]

    def flush(self) -> None:
        """Send what lingers, and raise the first error of any record sent since the last flush."""
        self._send_buffers(None)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Flush and stop. An open transaction is aborted."""
        if self._closed:
            return
        try:
            if self._transaction:
                self.abort_transaction()
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify()
            if self._sender is not None and self._sender is not threading.current_thread():
                self._sender.join()

    def begin_transaction(self) -> None:
        """Records sent from now on take effect together, at the commit, or never."""
        if self._settings.transactional_id is None:
            raise TransactionState("this producer has no transactional id", hint='make it with log.producer(transactional_id="...")')
        if self._transaction:
            raise TransactionState("a transaction is open already", hint="commit or abort it first")
        self.flush()
        self._transaction = self._storage.transactions.next_transaction(self._writer, self._generation)

    def commit_transaction(self) -> None:
        """Make everything sent in the transaction durable, then visible at once. If this raises, the transaction is aborted."""
        self._refuse_outside()
        try:
            self.flush()
            for partition in self._touched.values():
                partition.sync()
            self._decide(commit=True)
        except HeadraceError:
            self._abort_quietly()
            raise

    def abort_transaction(self) -> None:
        """Nothing sent in the transaction takes effect."""
        self._refuse_outside()
        with self._changed:
            for buffer in self._buffers.values():
                self._buffered -= buffer.size
                count = len(buffer.records)
                buffer.outcome.errors = dict.fromkeys(
                    range(count), TransactionState("the transaction was aborted before the record was sent")
                )
                buffer.outcome.finish(np.full(count, -1, np.int32), np.full(count, -1, np.int64))
            self._buffers.clear()
        self._failed = None
        self._decide(commit=False)

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

    def _decide(self, *, commit: bool) -> None:
        transaction, self._transaction = self._transaction, 0
        self._touched.clear()
        self._storage.transactions.decide(self._writer, self._generation, transaction, commit=commit)

    def _abort_quietly(self) -> None:
        """Abort after a failure, whose error is the one to be seen; a fenced writer's transaction is aborted already."""
        if self._transaction:
            try:
                self.abort_transaction()
            except LogError:
                self._transaction = 0

    def _new_buffer(self, topic: str) -> _Buffer:
        self._refuse_closed()
        buffer = self._buffers[topic] = _Buffer(self._storage.topic(topic), self._storage.clock.now())
        if self._sender is None and self._settings.linger > timedelta(0):
            self._sender = threading.Thread(target=self._send_lingering, name="headrace-producer", daemon=True)
            self._sender.start()
        self._changed.notify()
        return buffer

    def _send_buffers(self, topics: list[str] | None) -> None:
        with self._sending:
            with self._changed:
                names = list(self._buffers) if topics is None else [name for name in topics if name in self._buffers]
                taken = [(name, self._buffers.pop(name)) for name in names]
            for name, buffer in taken:
                self._send_buffer(name, buffer)
                with self._changed:
                    self._buffered -= buffer.size

    def _send_buffer(self, name: str, buffer: _Buffer) -> None:
        count = len(buffer.records)
        partitions, offsets = np.full(count, -1, dtype=np.int32), np.full(count, -1, dtype=np.int64)
        try:
            topic = self._storage.topic(name)
            rows, batch = self._arranged(topic, buffer)
            if batch is not None:
                for appended, places in self._store(topic, batch):
                    partitions[rows[places]] = appended.partition
                    offsets[rows[places]] = appended.base + np.arange(len(places))
        except HeadraceError as error:
            buffer.outcome.errors.update(
                {number: error for number in range(count) if offsets[number] < 0 and number not in buffer.outcome.errors}
            )
        self._failed = self._failed or next(iter(buffer.outcome.errors.values()), None)
        buffer.outcome.finish(partitions, offsets)

    def _arranged(self, topic: Topic, buffer: _Buffer) -> tuple[np.ndarray, pa.RecordBatch | None]:
        """The buffer as a batch; if some of its records do not fit the topic, these fail and the others go on."""
        layout, now = Layout(topic), self._storage.clock.now()
        everything = np.arange(len(buffer.records))
        try:
            return everything, layout.arrange(_table(topic, buffer.records, buffer.opened_at), now)
        except HeadraceError:
            good = []
            for number, record in enumerate(buffer.records):
                try:
                    layout.arrange(_table(topic, [record], buffer.opened_at), now)
                    good.append(number)
                except HeadraceError as error:
                    buffer.outcome.errors[number] = error
        if not good:
            return everything, None
        return np.array(good), layout.arrange(_table(topic, [buffer.records[number] for number in good], buffer.opened_at), now)

    def _store(self, topic: Topic, batch: pa.RecordBatch) -> list[tuple[Appended, np.ndarray]]:
        """Append a batch to its partitions."""
        if not batch.num_rows:
            return []
        stored = []
        self._spare += 1
        for index, part, rows in Layout(topic).split(batch, self._spare):
            partition = self._storage.partition(topic, index)
            now = self._storage.clock.now()
            pieces = [partition.layout.stored(piece, now) for piece in pieces_of(part)]
            stored.append((self._append(partition, pieces), rows))
        return stored

    def _append(self, partition: Partition, pieces: Sequence[Stored]) -> Appended:
        identity = (partition.topic.id, partition.index)
        # Numbers grow over generations too: a successor's first append must not look like a repetition of its predecessor's.
        sequence = self._sequences[identity] = self._sequences.get(identity, self._generation << 32) + 1
        author = Author(self._writer, self._generation, sequence, self._transaction)
        if self._transaction:
            self._touched[identity] = partition
        durable = self._settings.acks == "all" and not self._transaction
        return self._retried(lambda: partition.append(pieces, author, durable=durable))

    def _retried(self, append: Callable[[], Appended]) -> Appended:
        for attempt in range(self._settings.retries):
            try:
                return append()
            except (DiskFailed, RecordLost):
                # The same sequence is sent again, so an append that did reach the log is found, not repeated.
                self._storage.clock.sleep(0.01 * 2**attempt)
        return append()

    def _send_lingering(self) -> None:
        linger = self._settings.linger.total_seconds()
        while True:
            with self._changed:
                while not self._buffers and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                oldest = min(buffer.opened_at for buffer in self._buffers.values())
                wait = linger - (self._storage.clock.now() - oldest) / 1_000_000
                if wait > 0:
                    self._changed.wait(wait)
                    continue
            self._send_buffers(None)

    def _observed(self, error: HeadraceError) -> HeadraceError:
        self._failed = None
        return error

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LogError("this producer is closed", hint="make a new one with log.producer()")

    def _refuse_outside(self) -> None:
        if not self._transaction:
            raise TransactionState("no transaction is open", hint="call begin_transaction() first")


def pieces_of(batch: pa.RecordBatch, target: int = FRAME_BYTES) -> list[pa.RecordBatch]:
    """A batch in pieces of about one frame each."""
    count = max(1, -(-batch.nbytes // target))
    rows = -(-batch.num_rows // count)
    return [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]


def settings_of(acks: str | int, linger: Duration, **others: Any) -> ProducerSettings:
    return ProducerSettings(acks=str(acks), linger=duration(linger), **others)


def _table(topic: Topic, records: list[_Record], opened_at: int) -> pa.Table:
    """Records as columns; what no record has is left out."""
    values = [record.value for record in records]
    columns: dict[str, pa.Array] = {}
    try:
        if topic.columns.equals(BYTES):
            columns["value"] = pa.array([value["value"] if isinstance(value, Mapping) else value for value in values], pa.binary())
        else:
            rows = [value if isinstance(value, Mapping) else {} for value in values]
            columns = {column.name: pa.array([row.get(column.name) for row in rows], column.type) for column in topic.columns}
        if any(record.time is not None for record in records):
            columns[topic.time or "_time"] = pa.array([opened_at if record.time is None else record.time for record in records], TIMESTAMP)
        if any(record.key is not None for record in records):
            columns |= _keys(topic, [record.key for record in records], values)
        if any(record.headers for record in records):
            columns["_headers"] = pa.array([list(record.headers.items()) if record.headers else [] for record in records], HEADERS)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SchemaError(
            f"a record does not fit topic {topic.name!r}: {error}",
            why="nothing of it was written",
            hint=f"the topic's columns are {ddl(topic.columns)}",
        ) from error
    if any(value is None for value in values):
        columns["_tombstone"] = pa.array([value is None for value in values])
    return pa.table(columns)


def _keys(topic: Topic, keys: list[Key], values: list[Value]) -> dict[str, pa.Array]:
    """The key column: the topic's own, filled where a key was given beside the value (a tombstone has nothing else)."""
    if not topic.key:
        return {"_key": pa.array([key.encode() if isinstance(key, str) else key for key in keys], pa.binary())}
    parts = [key if isinstance(key, tuple) else (key,) for key in keys]
    columns = {}
    for place, name in enumerate(topic.key):
        given = [part[place] if place < len(part) else None for part in parts]
        written = [value.get(name) if isinstance(value, Mapping) else None for value in values]
        column = [first if first is not None else second for first, second in zip(given, written, strict=True)]
        columns[name] = pa.array(column, topic.columns.field(name).type)
    return columns


def _check(topic: Topic, value: Value) -> None:
    if isinstance(value, Mapping):
        for name in value:
            if name not in topic.columns.names:
                raise SchemaError(
                    f"topic {topic.name!r} has no column {name!r}",
                    why="nothing was written",
                    hint=f"columns: {', '.join(topic.columns.names)}",
                )
    elif value is not None and not topic.columns.equals(BYTES):
        raise SchemaError(
            f"topic {topic.name!r} has columns, {type(value).__name__} is not a record of it",
            hint=f"send a dict with {', '.join(topic.columns.names)}",
        )
    elif value is not None and not isinstance(value, bytes | str):
        raise SchemaError(
            f"topic {topic.name!r} takes bytes, not {type(value).__name__}", hint="encode the value, or create the topic with schema="
        )


def _size(value: Value) -> int:
    if isinstance(value, Mapping):
        return 64 + sum(len(item) if isinstance(item, bytes | str) else 8 for item in value.values())
    return 64 + len(value or b"")
