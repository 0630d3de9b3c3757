"""The delivery of a record that was sent: its outcome is known once its batch is stored."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.core.durations import Duration, duration
from headrace.core.errors import HeadraceError, LogError
from headrace.log.files.layout import Rows


class Placed(NamedTuple):
    """The place of a stored record."""

    partition: int
    offset: int


class OffsetRun(NamedTuple):
    """Records of a buffer, by their numbers in it, that are stored at consecutive offsets."""

    numbers: Rows
    partition: int
    base: int


class DeliveryOutcome:
    """The outcome of one buffer of records, shared by their deliveries."""

    __slots__ = ("_errors", "_pending", "_runs", "_send")

    def __init__(self, send: Callable[[], None]) -> None:
        self._send: Callable[[], None] | None = send
        # Held until the outcome is known. An event would cost three more objects for each record that is sent alone.
        self._pending = threading.Lock()
        self._pending.acquire()
        self._runs: Sequence[OffsetRun] = ()
        self._errors: dict[int, HeadraceError] = {}

    def finish(self, runs: Sequence[OffsetRun], errors: dict[int, HeadraceError]) -> None:
        """Record the outcome: each record is in a run, or has an error."""
        self._runs, self._errors = runs, errors
        self._send = None
        self._pending.release()

    def fail(self, count: int, error: HeadraceError) -> None:
        """Record that none of the records was sent."""
        self.finish((), dict.fromkeys(range(count), error))

    def known(self) -> bool:
        return self._send is None

    def error(self, number: int) -> HeadraceError | None:
        return self._errors.get(number)

    def of(self, number: int, timeout: float | None) -> Placed:
        send = self._send
        if timeout is None and send is not None:
            send()
        if not self._pending.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise LogError(f"no answer after {timeout} seconds", hint="flush the producer, or wait longer")
        self._pending.release()
        if number in self._errors:
            raise self._errors[number]
        found = ((run, bisect_left(run.numbers, number)) for run in self._runs)
        return next(
            Placed(run.partition, run.base + place) for run, place in found if place < len(run.numbers) and run.numbers[place] == number
        )


class Delivery:
    """A record on its way. `result()` waits until it is stored as `acks` asks, and returns its place."""

    __slots__ = ("_number", "_outcome")

    def __init__(self, outcome: DeliveryOutcome, number: int) -> None:
        self._outcome = outcome
        self._number = number

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._outcome.known()

    def error(self) -> HeadraceError | None:
        """The error that kept the record from being stored, if it is known by now."""
        return self._outcome.error(self._number)

    def result(self, timeout: Duration | None = None) -> Placed:
        """The partition and offset of the record; raises the error that kept it from being stored.

        Without `timeout`, a lingering record is sent now, together with the others in its buffer; with `timeout`, this only waits that
        long.
        """
        return self._outcome.of(self._number, duration(timeout).total_seconds() if timeout is not None else None)
