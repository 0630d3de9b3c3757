"""Payments that are sent at a steady rate, with the moment at which each was sent, and the alerts as they become readable."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.cli.demos.fraud.gateway import cards_for
from headrace.cli.demos.fraud.payments import Payments, PlantedCase
from headrace.cli.demos.fraud.rules import BURST

TICK = 0.01
_PER_CASE = 40


class Way(Protocol):
    """How payments and cards get to a job."""

    def send_cards(self, cards: pa.Table) -> None: ...

    def send(self, payments: pa.Table) -> None: ...


class Sender:
    """Sends payments of its own cards; `sent` has the moment at which each was handed over."""

    def __init__(self, way: Way, rate: int, seed: int) -> None:
        self._way, self._rate = way, rate
        self._cards = cards_for(rate, seed)
        self._payments = Payments(self._cards, seed, begin=time.time_ns() // 1_000, per_case=_PER_CASE)
        self.sent: dict[str, float] = {}
        way.send_cards(self._cards.profiles())
        self._prefix = f"{seed}-"

    def run(self, going: Callable[[], bool]) -> None:
        """Send at the rate for as long as it is told to go on."""
        started, count, tick = time.time(), 0, 0
        while going():
            tick += 1
            time.sleep(max(0.0, started + tick * TICK - time.time()))
            due = int((time.time() - started) * self._rate) - count
            if due > 0:
                now = time.time()
                table = self._payments.until(int(now * 1e6), due)
                ids = [self._prefix + one for one in table["id"].to_pylist()]
                self.sent |= dict.fromkeys(ids, now)
                self._way.send(table.set_column(0, "id", pa.array(ids, pa.string())))
                count += due

    def cases(self, begin: float, end: float) -> list[PlantedCase]:
        """The complete cases whose last payment was sent in a time."""
        return [case for case in self._payments.cases if begin <= self._at(case.payments[-1]) < end]

    def sixth(self, case: PlantedCase) -> float:
        """When the payment of a burst was sent with which there are more than five."""
        assert case.rule == BURST
        return self._at(case.payments[5])

    def _at(self, payment: str) -> float:
        return self.sent[self._prefix + payment]


class Alerts:
    """What was seen of the alerts: when each was readable first, by the payment that completed it; and how often each card was alerted."""

    def __init__(self) -> None:
        self.readable: dict[str, float] = {}
        self.cards: dict[tuple[str, str], int] = {}
        self.rules: dict[str, str] = {}

    def take(self, row: dict[str, Any], now: float) -> None:
        self.readable.setdefault(row["payment"], now)
        self.rules[row["payment"]] = row["rule"]
        key = row["rule"], row["card"]
        self.cards[key] = self.cards.get(key, 0) + 1

    def waits(self, sent: dict[str, float], begin: float, end: float, rule: str | None = None) -> np.ndarray:
        """Milliseconds from a payment to its alert, for payments sent in a time."""
        found = [
            (self.readable[payment] - at) * 1_000
            for payment, at in sent.items()
            if begin <= at < end and payment in self.readable and rule in (None, self.rules[payment])
        ]
        return np.array(found)
