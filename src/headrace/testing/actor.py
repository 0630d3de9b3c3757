"""One process of a simulated run: it does random things with a log, and records in the ledger what the log promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Protocol

import pyarrow as pa

from headrace.core.clock import ManualClock
from headrace.log.consumer import Consumer
from headrace.log.errors import DiskFailed, Fenced, RecordLost
from headrace.log.files import writers
from headrace.log.files.partition import Partition
from headrace.log.files.writers import Author
from headrace.log.log import Log
from headrace.log.producer import Producer
from headrace.log.topic import Topic
from headrace.testing.disk import SimulatedDisk
from headrace.testing.ledger import Broken, LedgerEntry, LedgerTransaction, Row, RunLedger, Status, parse

HOME = Path("/log")
PLACES = [("a", 0), ("b", 0)]
WRITERS = ["t1", "t2"]
_COLUMNS = ("value", "_offset", "_partition")


class Run(Protocol):
    """The state that the processes of a run share."""

    random: Random
    clock: ManualClock
    ledger: RunLedger
    numbers: Iterator[int]
    """So that no two processes have the same name."""
    epochs: dict[tuple[str, int], Epoch]

    def tell(self, text: str) -> None: ...


class Epoch:
    """The last epoch that a job has begun in a partition; the next one follows when it is acknowledged."""

    def __init__(self, number: int, entry: LedgerEntry, count: int) -> None:
        self.number = number
        self.entry = entry
        self.count = count
        self.stored = False


class OneLog(Log):
    """A log that is maintained on request, not by a thread of its own."""

    def partition(self, topic: Topic, index: int) -> Partition:
        found = super().partition(topic, index)
        found.on_roll = None
        return found


class ProducerSession:
    """A transactional producer and the transaction it has open."""

    def __init__(self, name: str, producer: Producer) -> None:
        self.name = name
        self.producer = producer
        self.transaction: LedgerTransaction | None = None


class FollowedTopic:
    """A reader that follows a topic, and the records it has read."""

    def __init__(self, topic: str, consumer: Consumer, *, committed: bool) -> None:
        self.topic = topic
        self.consumer = consumer
        self.committed = committed
        self.rows: dict[int, list[Row]] = {}


class Actor:
    """A process at work."""

    def __init__(self, run: Run, disk: SimulatedDisk) -> None:
        self._run = run
        self._random = run.random
        self._ledger = run.ledger
        self._log = OneLog(HOME, disk=disk, clock=run.clock)
        self._name = f"p{next(run.numbers)}.{run.random.randrange(1000)}"
        self._writer = writers.drawn()
        self._sequence = 0
        self._producers: dict[str, Producer] = {}
        self._sessions: list[ProducerSession] = []
        self._tails: list[FollowedTopic] = []

    def act(self) -> None:
        """Do one thing."""
        action = self._random.choices(*_CHOICES)[0]
        self._run.tell(f"{self._name} {action.__name__}")
        try:
            action(self)
        except (DiskFailed, RecordLost, Fenced) as error:
            self._run.tell(f"{self._name} {action.__name__}: {error}")

    def leave(self) -> None:
        """End normally."""
        for tail in self._tails:
            with suppress(DiskFailed):
                self._check_tail(tail)

    # Writing

    def send(self) -> None:
        acks = self._random.choice(("all", "1"))
        producer = self._producers.get(acks)
        if producer is None:
            producer = self._producers[acks] = self._log.producer(acks=acks, linger=None, retries=self._random.choice((0, 1, 3)))
        topic = self._random.choice("ab")
        entry = self._ledger.begin(topic, f"{self._name} {acks}")
        self._store(producer, entry, durable=acks == "all")

    def keyed(self) -> None:
        producer = self._producers.get("keyed")
        if producer is None:
            producer = self._producers["keyed"] = self._log.producer(linger=None)
        entry = self._ledger.begin("k", f"{self._name} keyed", key=self._random.choice((b"x", b"y", b"z")))
        placed = producer.send("k", self._ledger.attempt(entry, 1, self._filler())[0], key=entry.key).result()
        self._ledger.stored(entry, placed.partition, placed.offset, durable=True)

    def append(self) -> None:
        """Several record batches as one append, perhaps repeated as if its answer had been lost."""
        topic, index = self._random.choice(PLACES)
        self._append(topic, index, durable=self._random.random() < 0.6)

    def _append(self, topic: str, index: int, *, durable: bool) -> None:
        partition = self._log.partition(self._log.topic(topic), index)
        entry = self._ledger.begin(topic, f"{self._name} frames")
        count, size = self._random.randint(1, 5), self._random.randint(1, 3)
        self._sequence += 1
        for number in range(self._random.choice((1, 1, 2, 3))):
            values = self._ledger.attempt(entry, count, self._filler())
            tables = [pa.table({"value": pa.array(values[begin : begin + size], pa.binary())}) for begin in range(0, count, size)]
            now = self._run.clock.now()
            stored = [partition.layout.stored(partition.layout.arrange(table, now), now) for table in tables]
            done = partition.append(stored, Author(self._writer, 0, self._sequence), durable=durable)
            if number > 0 and not done.repeated:
                raise Broken(f"{entry} was stored a second time")
            self._ledger.stored(entry, index, done.base, durable=durable)

    def epoch(self) -> None:
        """The records of a job's epoch: sent first, or again because the job does not know whether they were stored."""
        place = self._random.choice(PLACES)
        epoch = self._run.epochs.get(place)
        if epoch is None or (epoch.stored and self._random.random() < 0.7):
            number = epoch.number + 1 if epoch is not None else 1
            epoch = self._run.epochs[place] = Epoch(number, self._ledger.begin(place[0], f"job {place}"), self._random.randint(1, 3))
        self._append_epoch(place, epoch)

    def _append_epoch(self, place: tuple[str, int], epoch: Epoch) -> None:
        values = self._ledger.attempt(epoch.entry, epoch.count, self._filler())
        table = pa.table({"value": pa.array(values, pa.binary())})
        stored = epoch.stored
        done = self._log.append_epoch(place[0], table, writer="job", epoch=epoch.number, partition=place[1])[0]
        if stored and not done.repeated:
            raise Broken(f"epoch {epoch.number} was stored again")
        if done.repeated:
            self._ledger.repeated(epoch.entry, place[1])
        else:
            self._ledger.stored(epoch.entry, place[1], done.base, durable=True)
        epoch.stored = True

    def roll(self) -> None:
        topic, index = self._random.choice([*PLACES, ("k", 0), ("__transactions", 0)])
        self._log.partition(self._log.topic(topic), index).roll()

    def compact(self) -> None:
        for report in self._log.maintain(self._random.choice(("k", "__transactions")), force=True):
            if report.error is not None:
                raise report.error

    def wait(self) -> None:
        """Wait long enough for transactions to time out."""
        self._run.clock.advance(timedelta(seconds=61))

    # Transactions

    def begin(self) -> None:
        """Become a new generation of a writer, or continue with an old one, which may be fenced."""
        if self._sessions and self._random.random() < 0.4:
            session = self._random.choice(self._sessions)
        else:
            name = self._random.choice(WRITERS)
            session = ProducerSession(name, self._log.producer(transactional_id=name, linger=None, retries=1))
            self._ledger.fence(name)
            self._sessions.append(session)
        if session.transaction is None:
            session.producer.begin_transaction()
            session.transaction = self._ledger.begin_transaction(session.name)

    def transaction(self) -> None:
        """A complete transaction, unless something interrupts it."""
        self.begin()
        for _ in range(self._random.randint(1, 3)):
            self.send_in_transaction()
        self.end()

    def send_in_transaction(self) -> None:
        session = self._open_session()
        if session is None:
            return
        entry = self._ledger.begin(self._random.choice("ab"), f"{self._name} {session.name}", transaction=session.transaction)
        try:
            self._store(session.producer, entry, durable=False)
        except (DiskFailed, RecordLost):
            self._abort(session)
            raise

    def end(self) -> None:
        session = self._open_session()
        if session is not None:
            (self._commit if self._random.random() < 0.7 else self._abort)(session)

    def _commit(self, session: ProducerSession) -> None:
        with self._ending(session) as transaction:
            if transaction.status is Status.OPEN:
                transaction.status = Status.DOUBT
            session.producer.commit_transaction()
            self._ledger.committed(transaction)

    def _abort(self, session: ProducerSession) -> None:
        with self._ending(session) as transaction:
            if transaction.status is Status.OPEN:
                transaction.status = Status.ABORTED
            session.producer.abort_transaction()
            transaction.decided = True

    @contextmanager
    def _ending(self, session: ProducerSession) -> Iterator[LedgerTransaction]:
        assert session.transaction is not None
        transaction, session.transaction = session.transaction, None
        try:
            yield transaction
        except (DiskFailed, RecordLost, Fenced):
            # Whether it is open is not known here; a new generation will find out.
            self._sessions.remove(session)
            raise

    def _open_session(self) -> ProducerSession | None:
        ready = [session for session in self._sessions if session.transaction is not None]
        return self._random.choice(ready) if ready else None

    # Reading

    def read(self) -> None:
        topic, index = self._random.choice(PLACES)
        self._check_part(topic, index, committed=self._random.random() < 0.5)

    def read_keyed(self) -> None:
        due = self._ledger.due("k", 0, committed=False)
        self._ledger.check_latest("k", 0, self._rows("k", 0, committed=False), due)

    def poll(self) -> None:
        if not self._tails or self._random.random() < 0.3:
            committed = self._random.random() < 0.5
            topic = self._random.choice("ab")
            isolation = "read_committed" if committed else "read_uncommitted"
            self._tails.append(FollowedTopic(topic, self._log.consumer(topic, isolation=isolation), committed=committed))
        tail = self._random.choice(self._tails)
        table = tail.consumer.poll(max_rows=self._random.choice((1, 2, 100)), timeout="0s", columns=_COLUMNS)
        for index, rows in _by_partition(table).items():
            delivered = tail.rows.setdefault(index, [])
            delivered += rows
            self._ledger.check_rows(tail.topic, index, delivered, committed=tail.committed)
        if self._random.random() < 0.3:
            self._check_tail(tail)

    def _check_tail(self, tail: FollowedTopic) -> None:
        """Check that a reader has delivered everything that it has passed."""
        for topic, index in tail.consumer.assignment:
            position = tail.consumer.position(topic, index)
            passed = [row for row in self._rows(topic, index, committed=tail.committed) if row.offset < position]
            if passed != tail.rows.get(index, []):
                raise Broken(f"a reader of {topic}/{index} got {tail.rows.get(index, [])} and not {passed}")

    def _check_whole(self, topic: str, index: int, *, committed: bool) -> list[Row]:
        due = self._ledger.due(topic, index, committed=committed)
        rows = self._rows(topic, index, committed=committed)
        self._ledger.check(topic, index, rows, due, committed=committed)
        return rows

    def _check_part(self, topic: str, index: int, *, committed: bool) -> None:
        """Check that a reader that begins in the middle reads the same."""
        rows = self._check_whole(topic, index, committed=committed)
        if rows:
            start = self._random.choice(rows).offset
            later = self._rows(topic, index, committed=committed, start=start)
            expected = [row for row in rows if row.offset >= start]
            if later[: len(expected)] != expected:
                raise Broken(f"{topic}/{index} read from {start} on has {later} and not {expected}")

    def _rows(self, topic: str, index: int, *, committed: bool, start: int | str = "beginning") -> list[Row]:
        isolation = "read_committed" if committed else "read_uncommitted"
        table = self._log.read(topic, columns=_COLUMNS[:2], partition=index, start=start, isolation=isolation)
        return [parse(offset, value) for value, offset in zip(table["value"].to_pylist(), table["_offset"].to_pylist(), strict=True)]

    # The end of a run

    def finish(self) -> None:
        """No more faults: check that everything promised is stored, and that everything works."""
        for name in WRITERS:
            session = ProducerSession(name, self._log.producer(transactional_id=name, linger=None))
            self._ledger.fence(name)
            self._sessions.append(session)
        session.producer.begin_transaction()
        session.transaction = self._ledger.begin_transaction(session.name)
        for topic in "ab":
            self._store(session.producer, self._ledger.begin(topic, f"end {topic}", transaction=session.transaction), durable=False)
        self._commit(session)
        for place, epoch in self._run.epochs.items():
            self._append_epoch(place, epoch)
        doubtful = any(transaction.status is Status.DOUBT for transaction in self._ledger.transactions)
        for topic, index in PLACES:
            self._check_whole(topic, index, committed=True)
            self._check_whole(topic, index, committed=False)
        if doubtful:
            # What one partition shows as committed must also be complete in those that were read before it.
            for topic, index in PLACES:
                self._check_whole(topic, index, committed=True)
        self._check_part(*self._random.choice(PLACES), committed=self._random.random() < 0.5)
        self.read_keyed()

    def _store(self, producer: Producer, entry: LedgerEntry, *, durable: bool) -> None:
        count = self._random.choice((1, 1, 2, 5))
        values = self._ledger.attempt(entry, count, self._filler())
        if count == 1:
            placed = producer.send(entry.topic, values[0]).result()
            partition, base = placed.partition, placed.offset
        else:
            done = producer.send_table(entry.topic, pa.table({"value": pa.array(values, pa.binary())}))[0]
            partition, base = done.partition, done.base
        self._ledger.stored(entry, partition, base, durable=durable)

    def _filler(self) -> bytes:
        # Zeros too: sectors that contain nothing else must not pass for unwritten ones.
        return self._random.choice((b"", b"x", b"\0")) * self._random.choice((0, 10, 300, 1200))


_CHOICES: tuple[list[Callable[[Actor], None]], list[int]] = (
    [Actor.send, Actor.append, Actor.epoch, Actor.keyed, Actor.roll, Actor.compact, Actor.wait,
     Actor.transaction, Actor.begin, Actor.send_in_transaction, Actor.end, Actor.read, Actor.read_keyed, Actor.poll],
    [6, 5, 4, 2, 3, 1, 1, 4, 2, 3, 2, 3, 1, 5],
)  # fmt: skip


def _by_partition(table: pa.Table | None) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    if table is not None:
        for value, offset, partition in zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True):
            found.setdefault(partition, []).append(parse(offset, value))
    return found
