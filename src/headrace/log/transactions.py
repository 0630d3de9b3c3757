"""The outcome of transactions: one durable record is the decision, and every reader looks it up.

A transaction's records are in their partitions with the writer's id and the transaction's number. A commit syncs them and appends the
decision to `__transactions`. No markers are placed afterwards, so nothing can be half committed. A new generation of a writer aborts what
the previous one left open and fences it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headrace.core.clock import Clock
from headrace.core.columns.schema import schema
from headrace.core.files.disk import Disk, Lock
from headrace.log.bell import Watch
from headrace.log.errors import DiskFailed, Fenced
from headrace.log.files.cursor import ABORTED, COMMITTED, OPEN, Cursor, ReadLimits
from headrace.log.files.frame import Frame
from headrace.log.files.partition import Appended, Partition
from headrace.log.files.stable import settled_before, stable_end
from headrace.log.files.writers import Author
from headrace.log.topic import Topic, TopicConfig

TOPIC = Topic(
    "__transactions", partitions=1, columns=schema("id string, writer bigint, generation bigint, transaction bigint, committed boolean"),
    key=("id",), config=TopicConfig().with_settings({"cleanup.policy": "compact"}), id="transactions",
)  # fmt: skip
DEFAULT_TIMEOUT = timedelta(seconds=60)


@dataclass
class _TransactionWriter:
    generation: int = 0
    decided: int = 0
    aborted: set[int] = field(default_factory=set)


class Transactions:
    """The decisions on all transactions of a log, folded from their topic as it grows. Threads may share it.

    A decision is an append of its writer, numbered by its transaction. Of two with the same number the log keeps the first, even if that
    one is not visible yet because its process died before it was durable.
    """

    def __init__(self, disk: Disk, locks: Path, partition: Partition, clock: Clock, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._disk = disk
        self._locks = locks
        self._partition = partition
        self._clock = clock
        self._timeout = timeout // timedelta(microseconds=1)
        self._folding = threading.RLock()
        self._cursor = Cursor(partition, 0)
        self._writers: dict[int, _TransactionWriter] = {}
        self._stable: dict[tuple[str, int], int] = {}

    def begin_generation(self, writer: int) -> int:
        """Become the only writer with this id: the previous generation is fenced and its open transaction aborted."""
        with self._lock_of(writer):
            return self._next_generation(writer)

    def next_transaction(self, writer: int, generation: int) -> int:
        """The number of the transaction that this writer may begin now."""
        state = self._newest(writer)
        self._refuse_old(writer, generation, state)
        return state.decided + 1

    def decide(self, writer: int, generation: int, transaction: int, *, commit: bool) -> bool:
        """Decide whether a transaction takes effect as a whole or not at all, and return the outcome. Durable when this returns; the first
        decision holds."""
        with self._lock_of(writer):
            state = self._newest(writer)
            self._refuse_old(writer, generation, state)
            if transaction > state.decided:
                self._append(writer, generation, transaction, commit=commit)
                state = self._newest(writer)
            return transaction not in state.aborted

    def watch(self) -> Watch:
        """The word that changes with every decision."""
        return self._partition.watch()

    def settle(self) -> None:
        """Make every written decision visible, also those of writers that died before theirs was durable."""
        self._partition.sync()

    def check(self, writer: int, generation: int) -> None:
        """Raise if a newer generation of this writer exists."""
        self._refuse_old(writer, generation, self._newest(writer))

    def of(self, frame: Frame) -> str:
        """The outcome of the transaction that a frame belongs to; one that was open for too long is aborted here."""
        known = self._known(frame)
        if known == OPEN:
            self._newest(frame.writer)
            known = self._known(frame)
        return self.abort(frame) if known == OPEN and self._clock.now() - frame.appended_at > self._timeout else known

    def abort(self, frame: Frame) -> str:
        """Abort the transaction that a frame belongs to, unless it has ended meanwhile; returns its outcome."""
        with self._lock_of(frame.writer):
            self._newest(frame.writer)
            if self._known(frame) == OPEN:
                self._next_generation(frame.writer)
        return self._known(frame)

    def stable_end(self, partition: Partition) -> int:
        """The offset up to which every transaction of a partition has ended: records below it read the same every time."""
        end = partition.state().visible
        if not self._partition.state().visible:
            # No transaction ever began: each begins with a generation of its writer.
            return end
        place = partition.topic.id, partition.index
        if place not in self._stable:
            # A transaction older than the longest one allowed has ended, or ends when it is next read.
            self._stable[place] = settled_before(partition, self._clock.now() - self._timeout)
        self._stable[place] = stable_end(partition, self, self._stable[place])
        return self._stable[place]

    def _known(self, frame: Frame) -> str:
        with self._folding:
            state = self._state(frame.writer)
            if frame.transaction > state.decided:
                return ABORTED if frame.generation < state.generation else OPEN
            return ABORTED if frame.transaction in state.aborted else COMMITTED

    def _next_generation(self, writer: int) -> int:
        while True:
            state = self._newest(writer)
            generation = state.generation + 1
            # The abort uses up the next number: whatever the old generation wrote under it, now or later, is void. If that number turns out
            # to be decided already, its decision is visible now, and the number after it is free.
            repeated = self._append(writer, generation, state.decided + 1, commit=False).repeated
            self._newest(writer)
            if not repeated:
                return generation

    def _append(self, writer: int, generation: int, transaction: int, *, commit: bool) -> Appended:
        # Compaction keeps the newest commit and every abort of a writer: enough to tell the outcome of any transaction.
        identity = f"{writer:x}" if commit else f"{writer:x}/{transaction}"
        row = {"id": identity, "writer": _signed(writer), "generation": generation, "transaction": transaction, "committed": commit}
        layout, now = self._partition.layout, self._clock.now()
        stored = layout.stored(layout.arrange(pa.Table.from_pylist([row], TOPIC.columns), now), now)
        return self._partition.append([stored], Author(writer, generation, transaction), durable=True)

    def _newest(self, writer: int) -> _TransactionWriter:
        """The decisions about a writer so far."""
        with self._folding:
            while batches := self._cursor.read(ReadLimits(), ("writer", "generation", "transaction", "committed")):
                for batch in batches:
                    self._fold(batch)
            return self._state(writer)

    def _fold(self, batch: pa.RecordBatch) -> None:
        for writer, generation, transaction, committed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            state = self._state(writer & 0xFFFF_FFFF_FFFF_FFFF)
            state.generation = max(state.generation, generation)
            state.decided = max(state.decided, transaction)
            if not committed:
                state.aborted.add(transaction)

    def _state(self, writer: int) -> _TransactionWriter:
        return self._writers.setdefault(writer, _TransactionWriter())

    def _refuse_old(self, writer: int, generation: int, state: _TransactionWriter) -> None:
        if generation < state.generation:
            raise Fenced(
                f"writer {writer:x} of generation {generation} was replaced by generation {state.generation}",
                why="two writers with one id would store records twice",
                hint="stop this one, or give each its own transactional id",
            )

    def _lock_of(self, writer: int) -> Lock:
        path = self._locks / f"{writer:016x}.lock"
        try:
            return self._disk.lock(path)
        except OSError as error:
            raise DiskFailed(
                f"{path} could not be opened: {error.strerror}", why="nothing was decided", hint="free space, then try again"
            ) from error


@dataclass(frozen=True)
class Settled:
    """The outcomes of transactions below a stable end: one that is open all the same is aborted, whatever its age.

    The stable end goes by the times of appends. If the clock was set back between them, a younger transaction may be below.
    """

    transactions: Transactions

    def of(self, frame: Frame) -> str:
        found = self.transactions.of(frame)
        return self.transactions.abort(frame) if found == OPEN else found


def _signed(writer: int) -> int:
    return writer - (1 << 64) if writer >> 63 else writer
