"""The ledger of a simulated run: what a log has promised, and the check of everything that is read against it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum

Place = tuple[str, int]


class Broken(AssertionError):
    """The log broke a promise."""


class Certainty(IntEnum):
    """The certainty of an append: none, while the machine runs, or forever; or it is lost forever."""

    LOST = -1
    MAYBE = 0
    WRITTEN = 1
    DURABLE = 2


class Status(Enum):
    """The state of a transaction. In doubt: its commit was begun, and no answer came back."""

    OPEN = "open"
    DOUBT = "in doubt"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class LedgerTransaction:
    """Appends that take effect together. Once it is `decided`, it blocks no reader."""

    writer: str
    number: int
    status: Status = Status.OPEN
    decided: bool = False
    entries: list[LedgerEntry] = field(default_factory=list)


@dataclass
class LedgerEntry:
    """One append that is to be stored once, however often it is tried. Each attempt has its own content."""

    number: int
    topic: str
    group: str
    boot: int
    transaction: LedgerTransaction | None = None
    key: bytes | None = None
    partition: int | None = None
    base: int = -1
    level: Certainty = Certainty.MAYBE
    attempts: int = 0


@dataclass(frozen=True)
class Row:
    """A record as it was read: its entry and attempt, and its number among their `count` records."""

    offset: int
    entry: int
    attempt: int
    index: int
    count: int


class RunLedger:
    """All appends of a run, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.transactions: list[LedgerTransaction] = []
        self.boot = 1
        self._places: dict[tuple[str, int, int], tuple[int, int, int]] = {}

    # What is done

    def begin(self, topic: str, group: str, *, transaction: LedgerTransaction | None = None, key: bytes | None = None) -> LedgerEntry:
        """An append is about to be tried; entries of one group are stored in their order."""
        entry = LedgerEntry(len(self.entries), topic, group, self.boot, transaction, key)
        self.entries.append(entry)
        if transaction is not None:
            transaction.entries.append(entry)
        return entry

    def attempt(self, entry: LedgerEntry, count: int, filler: bytes = b"") -> list[bytes]:
        """The values of the records of one more attempt."""
        entry.attempts, entry.boot = entry.attempts + 1, self.boot
        if entry.level <= Certainty.MAYBE:
            entry.level, entry.base = Certainty.MAYBE, -1
        return [b"%d:%d:%d:%d:" % (entry.number, entry.attempts, index, count) + filler for index in range(count)]

    def stored(self, entry: LedgerEntry, partition: int, base: int, *, durable: bool) -> None:
        """The log reports the place of an append; everything before a durable one is durable too."""
        if entry.partition not in (None, partition):
            raise Broken(f"{entry} was acknowledged in partition {partition}")
        if entry.base not in (-1, base) and entry.level != Certainty.MAYBE:
            raise Broken(f"{entry} was acknowledged at {base}")
        entry.partition, entry.base = partition, base
        entry.level = max(entry.level, Certainty.DURABLE if durable else Certainty.WRITTEN)
        if durable:
            for other in self.entries:
                if (
                    (other.topic, other.partition) == (entry.topic, partition)
                    and other.level == Certainty.WRITTEN
                    and -1 < other.base < base
                ):
                    other.level = Certainty.DURABLE

    def repeated(self, entry: LedgerEntry, partition: int) -> None:
        """The log reports that an append is already stored, durably."""
        if entry.partition not in (None, partition):
            raise Broken(f"{entry} was acknowledged in partition {partition}")
        entry.partition, entry.level = partition, Certainty.DURABLE

    def begin_transaction(self, writer: str) -> LedgerTransaction:
        self.transactions.append(LedgerTransaction(writer, len(self.transactions)))
        return self.transactions[-1]

    def committed(self, transaction: LedgerTransaction) -> None:
        if transaction.status is Status.ABORTED:
            raise Broken(f"{transaction.writer} committed a transaction that was fenced or aborted")
        transaction.status, transaction.decided = Status.COMMITTED, True
        for entry in transaction.entries:
            if entry.level == Certainty.LOST:
                raise Broken(f"{entry} of a committed transaction is lost")
            if entry.base >= 0:
                entry.level = Certainty.DURABLE

    def fence(self, writer: str) -> None:
        """A new generation of a writer has begun: what the previous one left open is void."""
        for transaction in self.transactions:
            if transaction.writer == writer:
                transaction.decided = True
                if transaction.status is Status.OPEN:
                    transaction.status = Status.ABORTED

    def power_cut(self) -> None:
        self.boot += 1
        for entry in self.entries:
            if entry.level == Certainty.WRITTEN:
                entry.level = Certainty.MAYBE

    # What is read

    def due(self, topic: str, partition: int, *, committed: bool) -> list[LedgerEntry]:
        """The entries that a read that begins now must find. Committed reads end before an open transaction."""
        here = [entry for entry in self.entries if entry.topic == topic and entry.partition in (None, partition)]
        undecided = [entry.base for entry in here if entry.transaction is not None and not entry.transaction.decided]
        end = min(undecided, default=2**63) if committed else 2**63
        return [entry for entry in here if entry.partition == partition and entry.level >= Certainty.WRITTEN and entry.base < end
                and (not committed or entry.transaction is None or entry.transaction.status is Status.COMMITTED)]  # fmt: skip

    def check(self, topic: str, partition: int, rows: list[Row], due: Iterable[LedgerEntry], *, committed: bool) -> None:
        """Check a read of a whole partition; `due` is what it had to find."""
        self.check_rows(topic, partition, rows, committed=committed)
        found = self._whole_appends(rows)
        for entry in due:
            if entry.number not in found:
                raise Broken(f"{entry} is missing")
        orders: dict[str, int] = defaultdict(lambda: -1)
        for number in found:
            entry = self.entries[number]
            if number <= orders[entry.group]:
                raise Broken(f"{entry} is behind a later append of {entry.group}")
            orders[entry.group] = number
        # A committed read ends before an open transaction, and says nothing of what follows its last record.
        self._learn(topic, partition, found, passed=(rows[-1].offset if rows else 0) if committed else None)

    def check_latest(self, topic: str, partition: int, rows: list[Row], due: Iterable[LedgerEntry]) -> None:
        """Check a read of a compacted partition: for each append its record, or a later one of its key."""
        self.check_rows(topic, partition, rows, committed=False)
        latest: dict[bytes | None, int] = {}
        for row in rows:
            latest[self.entries[row.entry].key] = row.offset
        for entry in due:
            if latest.get(entry.key, -1) < entry.base:
                raise Broken(f"{entry} is missing, and there is none after it")

    def check_rows(self, topic: str, partition: int, rows: Iterable[Row], *, committed: bool) -> None:
        """Check some records of any reader, in their order."""
        before = -1
        for row in rows:
            if row.offset <= before:
                raise Broken(f"offset {row.offset} of {topic}/{partition} after {before}")
            before = row.offset
            record = (row.entry, row.attempt, row.index)
            known = self._places.setdefault((topic, partition, row.offset), record)
            if known != record:
                raise Broken(f"offset {row.offset} of {topic}/{partition} is {record}, and was {known}")
            entry = self.entries[row.entry]
            if entry.topic != topic or entry.partition not in (None, partition):
                raise Broken(f"{entry} was found in {topic}/{partition}")
            if entry.level == Certainty.LOST:
                raise Broken(f"{entry} was lost and came back")
            if committed and entry.transaction is not None:
                status = entry.transaction.status
                if status not in (Status.COMMITTED, Status.DOUBT):
                    raise Broken(f"{entry} of a transaction that is {status.value} was read")
                self.committed(entry.transaction)

    def _whole_appends(self, rows: list[Row]) -> dict[int, Row]:
        """The first row of each append, in their order; all its records must be stored consecutively, from one attempt."""
        found: dict[int, Row] = {}
        for place, row in enumerate(rows):
            if row.index == 0:
                if row.entry in found:
                    raise Broken(f"{self.entries[row.entry]} is stored twice")
                found[row.entry] = row
                parts = [(part.entry, part.attempt, part.index, part.offset - row.offset) for part in rows[place : place + row.count]]
                whole = [(row.entry, row.attempt, index, index) for index in range(row.count)]
                if parts != whole:
                    raise Broken(f"{self.entries[row.entry]} is not whole: {parts}")
        if sum(row.count for row in found.values()) != len(rows):
            raise Broken("there are records without the beginning of their append")
        return found

    def _learn(self, topic: str, partition: int, found: dict[int, Row], *, passed: int | None) -> None:
        """What a reader has seen stays while the machine runs. After a power cut, what is found is durable, and the rest is lost.

        A committed reader skips transactions, and knows of others only what is before the offset `passed`.
        """
        for entry in self.entries:
            if entry.topic != topic:
                continue
            row = found.get(entry.number)
            old = entry.boot < self.boot
            if row is not None:
                if entry.base not in (-1, row.offset) and entry.level != Certainty.MAYBE:
                    raise Broken(f"{entry} is at {row.offset}")
                entry.partition, entry.base = partition, row.offset
                entry.level = max(entry.level, Certainty.DURABLE if old else Certainty.WRITTEN)
                continue
            told = passed is None or (entry.transaction is None and 0 <= entry.base < passed)
            if told and entry.partition == partition and old and entry.level == Certainty.MAYBE:
                entry.level = Certainty.LOST


def parse(offset: int, value: bytes) -> Row:
    """The record that a value is."""
    entry, attempt, index, count, _ = value.split(b":", 4)
    return Row(offset, int(entry), int(attempt), int(index), int(count))
