"""A topic read as a queue: each message goes to one consumer at a time, until it is acknowledged.

Any number of processes and threads receive from one queue, also from a single partition. A received message is hidden from the others for
the visibility time-out. If it is not acknowledged by then, or is returned, it is delivered again; after `max_deliveries` it goes to the
dead-letter topic. Whatever is killed and when, an acknowledged message is never delivered again and an unacknowledged one is never lost.
There is no replay; the records stay in the topic for its other readers.

First deliveries of a partition are in its order. With several consumers, or after a redelivery, a message may be handled after one that was
sent later. The queue begins at the first record that the topic has.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import timedelta

from headrace.core.counts import counts
from headrace.core.durations import Duration, microseconds
from headrace.core.errors import SettingsError
from headrace.log.bell import Watch, wait
from headrace.log.errors import OffsetOutOfRange, ReceiptExpired
from headrace.log.queue.dead_letters import AlterableStorage, Dead, DeadLetterTopic
from headrace.log.queue.message import Message, Receipt
from headrace.log.queue.reader import QueueReader, Row
from headrace.log.queue.state import Place, QueueState, StateChange, Unacknowledged
from headrace.log.topic import BYTES

# A waiting process looks this often even if nothing has happened: the clock may have been set.
_LOOK_ANYWAY = 0.1
# Dead letters are moved in batches: the cost of a receive does not depend on how many died at once.
_BURIED_AT_ONCE = 100


@dataclass(frozen=True)
class QueueSettings:
    """The settings of a queue's deliveries."""

    topic: str
    name: str
    visibility_timeout: timedelta = timedelta(seconds=30)
    max_deliveries: int = 5
    dead_letter: str = ""

    def __post_init__(self) -> None:
        if not counts(self.max_deliveries):
            raise SettingsError(f"max_deliveries={self.max_deliveries!r} delivers nothing", hint="give a whole number above zero")
        if self.visibility_timeout <= timedelta(0):
            raise SettingsError(
                "visibility_timeout is not positive", why="every consumer would receive the message at once", hint='give "30s"'
            )


@dataclass(frozen=True)
class Depth:
    """The number of messages that wait for their first or a further delivery, are held by consumers, wait for a delay to pass, are dead
    letters, or vanished because retention or compaction removed their records. `ready` counts offsets, so it is exact except for removed
    records."""

    ready: int
    in_flight: int
    delayed: int
    dead: int
    expired: int


class Queue:
    """One consumer of a queue, or several in threads. Made by `log.queue`."""

    def __init__(self, storage: AlterableStorage, state: QueueState, settings: QueueSettings) -> None:
        self._clock = storage.clock
        self._settings = settings
        self._state = state
        self._reader = QueueReader(storage, settings.topic)
        self._dead_letters = DeadLetterTopic(storage, settings.dead_letter, f"{settings.topic}/{settings.name}")
        self._lock = state.partition.disk.lock(state.partition.directory / "queue")
        self._timeout = microseconds(settings.visibility_timeout)
        self._due_at: int | None = None
        self._turn = 0

    def receive(self, max: int = 10, wait: Duration = "1s") -> list[Message]:  # noqa: A002 - the word everybody knows
        """Up to `max` messages, hidden from others for the visibility time-out; none if none arrives within `wait`."""
        if not counts(max):
            raise SettingsError(f"max={max!r} receives nothing", hint="give a whole number above zero")
        deadline = time.monotonic() + microseconds(wait) / 1_000_000
        while True:
            watches = [*self._reader.watches(), self._state.partition.watch()]
            try:
                messages = self._taken(max)
            except OffsetOutOfRange:
                # Retention removed a record between the lookup and the read; the next lookup begins after it.
                continue
            if messages or not self._changed(watches, deadline):
                return messages

    def ack(self, *receipts: str) -> None:
        """Mark these messages as done. Durable when this returns; several at once cost one sync.

        A message that another consumer holds by now is not marked; the call raises after it has marked the others.
        """
        change, late = StateChange(), []
        with self._lock:
            self._state.refresh()
            for text in receipts:
                receipt = Receipt.read(text)
                held = self._state.held.get(receipt.place)
                if held is not None and held.lease == receipt.lease:
                    change.finish(receipt.place)
                elif held is not None:
                    late.append(text)
            self._state.append(change)
        # The others already see it, so that none delivers it again; the sync is shared with theirs.
        self._state.partition.sync()
        if late:
            raise self._expired(late)

    def nack(self, receipt: str, delay: Duration = "0s", *, reason: str = "") -> None:
        """Return this message: it is delivered again after `delay`, or goes to the dead letters after its last delivery."""
        with self._lock:
            place, held = self._held(receipt)
            change = StateChange()
            change.hold(place, Unacknowledged(held.deliveries, self._clock.now() + microseconds(delay), reason=reason or "given back"))
            self._state.append(change)
            if held.deliveries >= self._settings.max_deliveries:
                self._bury([place])

    def extend(self, receipt: str, timeout: Duration) -> None:
        """Keep this message for `timeout` from now."""
        with self._lock:
            place, held = self._held(receipt)
            change = StateChange()
            change.hold(place, held._replace(visible_at=self._clock.now() + microseconds(timeout)))
            self._state.append(change)

    def depth(self) -> Depth:
        """The number of messages in each state."""
        with self._lock:
            self._state.refresh()
            now, state = self._clock.now(), self._state
            new = sum(end - max(state.frontiers.get(index, 0), start) for index, (start, end) in enumerate(self._reader.ends()))
            waiting = [held for held in state.held.values() if held.visible_at > now]
            leased = sum(held.lease != 0 for held in waiting)
            again = len(state.held) - len(waiting)
            return Depth(new + again, leased, len(waiting) - leased, state.totals.dead, state.totals.expired)

    def _taken(self, wanted: int) -> list[Message]:
        with self._lock:
            try:
                self._state.refresh()
                self._finish_burying()
                now = self._clock.now()
                due = self._state.due(now, wanted + _BURIED_AT_ONCE)
                dying = {place for place in due if self._state.held[place].deliveries >= self._settings.max_deliveries}
                if dying:
                    self._bury(sorted(dying))
                again = [place for place in due if place not in dying]
                self._state.put_back(again[wanted:])
                messages = self._delivered(again[:wanted], wanted, now)
            except BaseException:
                # Due messages have been removed from the order, and may not have been changed.
                self._state.forget()
                raise
            self._due_at = self._state.next_due()
            return messages

    # Below: called under the lock.

    def _delivered(self, again: list[Place], wanted: int, now: int) -> list[Message]:
        change = StateChange()
        found: list[tuple[Place, int, Row]] = []
        for place in again:
            row = self._reader.row(place)
            if row is None:
                change.vanish(place)
            else:
                found.append((place, self._state.held[place].deliveries + 1, row))
        found += [(place, 1, row) for place, row in self._new(wanted - len(found), change)]
        messages = []
        for place, deliveries, row in found:
            receipt = Receipt(place, secrets.randbits(62) + 1)
            change.hold(place, Unacknowledged(deliveries, now + self._timeout, receipt.lease))
            messages.append(self._message(receipt, deliveries, row))
        # Not synced: if the machine fails now, the messages are delivered again, as they would be anyway.
        self._state.append(change)
        return messages

    def _new(self, wanted: int, change: StateChange) -> list[tuple[Place, Row]]:
        """Records that were never delivered, from each partition in turn; records in `change` how far it came."""
        found: list[tuple[Place, Row]] = []
        partitions = self._reader.topic.partitions
        self._turn += 1
        for number in range(partitions):
            if len(found) >= wanted:
                break
            index = (self._turn + number) % partitions
            frontier = self._state.frontiers.get(index)
            rows, first, following = self._reader.following(index, frontier or 0, wanted - len(found))
            if frontier is not None and first > frontier:
                change.expired += first - frontier
            if following != frontier:
                change.advance(index, following)
            found += [((index, row["_offset"]), row) for row in rows]
        return found

    def _bury(self, places: list[Place]) -> None:
        """Move messages to the dead letters. The decision is durable first, so that a crash at any point repeats none and loses none."""
        totals = self._state.totals
        epoch = totals.epoch + 1
        change = StateChange()
        for place in places:
            change.hold(place, self._state.held[place]._replace(epoch=epoch, lease=0))
        change.total(totals._replace(epoch=epoch))
        self._state.append(change, durable=True)
        self._finish_burying()

    def _finish_burying(self) -> None:
        state = self._state
        for epoch in sorted({state.held[place].epoch for place in state.dying}):
            places = sorted(place for place in state.dying if state.held[place].epoch == epoch)
            rows = [(place, self._reader.row(place)) for place in places]
            dead = [Dead(place, state.held[place], row) for place, row in rows if row is not None]
            if dead:
                self._dead_letters.append(self._reader.topic, dead, epoch)
            change = StateChange()
            for place in places:
                change.finish(place)
            totals = state.totals
            change.total(totals._replace(dead=totals.dead + len(dead), expired=totals.expired + len(places) - len(dead)))
            state.append(change)

    def _held(self, text: str) -> tuple[Place, Unacknowledged]:
        self._state.refresh()
        receipt = Receipt.read(text)
        held = self._state.held.get(receipt.place)
        if held is None or held.lease != receipt.lease:
            raise self._expired([text])
        return receipt.place, held

    def _expired(self, receipts: list[str]) -> ReceiptExpired:
        return ReceiptExpired(
            f"receipt {', '.join(receipts)} of queue {self._settings.name!r} on {self._settings.topic!r} has expired",
            why="the message was acknowledged, returned or delivered to another consumer, so its work may be done twice",
            hint="raise visibility_timeout, or call message.extend() while it is worked on",
        )

    def _message(self, receipt: Receipt, deliveries: int, row: Row) -> Message:
        columns = self._reader.topic.columns
        value = row["value"] if columns.equals(BYTES) else {name: row[name] for name in columns.names}
        return Message(
            value=None if row["_tombstone"] else value, key=row["_key"], time=row["_time"], headers=dict(row["_headers"] or ()),
            deliveries=deliveries, receipt=str(receipt), _queue=self,
        )  # fmt: skip

    def _changed(self, watches: list[Watch], deadline: float) -> bool:
        """Wait, without the lock, until there may be something new; False if the wait timed out."""
        rest = deadline - time.monotonic()
        if rest <= 0:
            return False
        due = (self._due_at - self._clock.now()) / 1_000_000 if self._due_at is not None else rest
        wait(watches, max(0, min(rest, due, _LOOK_ANYWAY)))
        return True
