"""A message of a queue, held by one consumer until it is acknowledged, returned, or times out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from headrace.core.durations import Duration
from headrace.core.errors import SettingsError


class OriginQueue(Protocol):
    """The queue that a message came from."""

    def ack(self, *receipts: str) -> None: ...

    def nack(self, receipt: str, delay: Duration = "0s", *, reason: str = "") -> None: ...

    def extend(self, receipt: str, timeout: Duration) -> None: ...


@dataclass(frozen=True)
class Message:
    """The record, the number of its deliveries including this one, and the receipt of this delivery."""

    value: dict[str, Any] | bytes | None
    key: bytes | None
    time: datetime | None
    headers: Mapping[str, bytes]
    deliveries: int
    receipt: str
    _queue: OriginQueue = field(repr=False, compare=False)

    def ack(self) -> None:
        """Mark the message as done: durable when this returns, and never delivered again."""
        self._queue.ack(self.receipt)

    def nack(self, delay: Duration = "0s", *, reason: str = "") -> None:
        """Return the message: it is delivered again after `delay`, or becomes a dead letter after its last delivery."""
        self._queue.nack(self.receipt, delay, reason=reason)

    def extend(self, timeout: Duration) -> None:
        """Keep the message for `timeout` from now."""
        self._queue.extend(self.receipt, timeout)


class Receipt:
    """One delivery of one record, as text: its partition, its offset, and a number drawn for the delivery."""

    __slots__ = ("lease", "place")

    def __init__(self, place: tuple[int, int], lease: int) -> None:
        self.place = place
        self.lease = lease

    def __str__(self) -> str:
        return f"{self.place[0]}-{self.place[1]}-{self.lease:x}"

    @classmethod
    def read(cls, text: str) -> Receipt:
        """
        >>> Receipt.read("3-120-ff").place
        (3, 120)
        """
        try:
            partition, offset, lease = text.split("-")
            return cls((int(partition), int(offset)), int(lease, 16))
        except ValueError as error:
            raise SettingsError(f"{text!r} is not a receipt", hint="give message.receipt, as receive() returned it") from error
