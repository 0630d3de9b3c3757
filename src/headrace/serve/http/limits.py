"""Limits for clients: the size of a body, requests a second, and connections."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """The bounds of a server."""

    body: int = 16 * 1024 * 1024
    """Bytes of a request."""
    rate: float = 2_000.0
    """Requests a second of one address."""
    burst: float = 4_000.0
    connections: int = 4_000
    """Above this number the connection that has waited longest for a request is closed."""
    patience: float = 20.0
    """Seconds in which a request must arrive, and then its body."""
    subscribers: int = 2_000
    ingests: int = 8
    """Requests that may write at the same time; further ones get 429."""
    stalled: float = 30.0
    """Seconds after which a client that reads nothing of what it is sent is dropped."""


class Rates:
    """A bucket of requests for each address; the least recently seen addresses are forgotten."""

    def __init__(self, rate: float, burst: float, most: int = 10_000) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        now = time.monotonic()
        left, seen = self._buckets.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - seen) * self._rate)
        allowed = left >= 1
        self._buckets[address] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return allowed
