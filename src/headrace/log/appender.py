"""The appends of one writer: numbered, so that a repeated one is stored once, and in a transaction if one is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.log.errors import DiskFailed, RecordLost, TransactionState
from headrace.log.files import writers
from headrace.log.files.layout import StoredBatch
from headrace.log.files.partition import Appended, Partition
from headrace.log.files.writers import Author
from headrace.log.storage import Storage

_PAUSE = 0.01


class Appender:
    """Stores batches under one writer's id. With a transactional id it appends only inside of transactions. One thread a partition."""

    def __init__(self, storage: Storage, *, durable: bool, retries: int, transactional_id: str | None = None) -> None:
        self._storage = storage
        self._durable = durable
        self._retries = retries
        self._transactional = transactional_id is not None
        self._sequences: dict[tuple[str, int], int] = {}
        self._transaction = 0
        self._touched: dict[tuple[str, int], Partition] = {}
        if transactional_id is None:
            self._writer, self._generation = writers.drawn(), 0
        else:
            # Epochs have their own names: a job and a producer with the same name must not fence each other.
            self._writer = writers.named(f"transactions of {transactional_id}")
            self._generation = storage.transactions.begin_generation(self._writer)

    @property
    def writer(self) -> int:
        return self._writer

    @property
    def in_transaction(self) -> bool:
        return self._transaction > 0

    def append(self, partition: Partition, pieces: Sequence[StoredBatch]) -> Appended:
        """Store pieces of a batch in one partition, all or none."""
        self.refuse_outside()
        identity = (partition.topic.id, partition.index)
        # Numbers grow over generations too: a successor's first append must not look like a repetition of its predecessor's.
        sequence = self._sequences[identity] = self._sequences.get(identity, self._generation << 32) + 1
        author = Author(self._writer, self._generation, sequence, self._transaction)
        if self._transaction:
            self._touched[identity] = partition
        durable = self._durable and not self._transaction
        return self._retried(lambda: partition.append(pieces, author, durable=durable))

    def begin(self) -> None:
        """From now on, appends take effect together at the commit, or never."""
        if not self._transactional:
            raise TransactionState("this producer has no transactional id", hint='make it with log.producer(transactional_id="...")')
        if self._transaction:
            raise TransactionState("a transaction is open already", hint="commit or abort it first")
        self._transaction = self._storage.transactions.next_transaction(self._writer, self._generation)

    def commit(self) -> None:
        """Make everything appended in the transaction durable, then visible at once."""
        for partition in self._touched.values():
            partition.sync()
        try:
            committed = self._decide(commit=True)
        except (DiskFailed, RecordLost):
            # The decision may have been stored all the same; the one that readers see counts.
            if not self._decide(commit=False):
                raise
        else:
            assert committed, "only a newer generation aborts a writer's transaction, and then this one is refused"

    def abort(self) -> None:
        """Nothing appended in the transaction takes effect."""
        self._decide(commit=False)

    def forget(self) -> None:
        """Leave a transaction that a newer generation of this writer has aborted or will abort."""
        self._transaction = 0
        self._touched.clear()

    def refuse_outside(self) -> None:
        """Raise if this writer works in transactions and none is open."""
        if self._transactional and not self._transaction:
            raise TransactionState(
                "no transaction is open, and this producer has a transactional id",
                why="a record outside of a transaction would take effect at once",
                hint="use `with producer.transaction():`, or a producer without transactional_id",
            )

    def _decide(self, *, commit: bool) -> bool:
        committed = self._storage.transactions.decide(self._writer, self._generation, self._transaction, commit=commit)
        self.forget()
        return committed

    def _retried(self, append: Callable[[], Appended]) -> Appended:
        for attempt in range(self._retries):
            try:
                return append()
            except (DiskFailed, RecordLost):
                # The same sequence number is sent again, so that an append that did reach the log is found, not repeated.
                self._storage.clock.sleep(_PAUSE * 2**attempt)
        return append()
