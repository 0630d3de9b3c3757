"""Connections of a server: one that sends no request in time is closed, and where there are too many, the one that waits longest.

A client that opens connections and says nothing, or says it a byte at a time, holds none that another client needs.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from headrace.serve.http.limits import ServerLimits

# Files of the log, of caches, and of the program itself.
_OWN_FILES = 512


class IdleConnections:
    """The connections of one server without a request at work, the one that waits longest first."""

    def __init__(self, limits: ServerLimits) -> None:
        self.most = _affordable(limits.connections)
        self.patience = limits.patience
        self._held: OrderedDict[GuardedProtocol, asyncio.TimerHandle] = OrderedDict()
        # They still count among the connections of the server until the event loop has closed them.
        self._ending: set[GuardedProtocol] = set()

    def add(self, one: GuardedProtocol) -> None:
        """Let a connection wait for a request; bytes of an incomplete one do not extend its time."""
        self.remove(one)
        self._held[one] = one.loop.call_later(self.patience, self._end, one)

    def remove(self, one: GuardedProtocol) -> None:
        timer = self._held.pop(one, None)
        if timer is not None:
            timer.cancel()

    def make_room(self, count: int) -> None:
        """Close the connections that have waited longest while there are too many."""
        while count - len(self._ending) > self.most and self._held:
            self._end(next(iter(self._held)))

    def lost(self, one: GuardedProtocol) -> None:
        """Forget a connection that is closed."""
        self.remove(one)
        self._ending.discard(one)

    def _end(self, one: GuardedProtocol) -> None:
        self.remove(one)
        self._ending.add(one)
        one.transport.abort()


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with a bound on the time in which a request must arrive, and on the number of connections."""

    waiting: ClassVar[IdleConnections]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.waiting.add(self)
        self.waiting.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self.waiting.remove(self)
            if self.cycle.response_complete:
                self.waiting.add(self)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self.waiting.remove(self)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self.waiting.add(self)


def guarded(limits: ServerLimits) -> type[GuardedProtocol]:
    """The connections of one server, which share their bounds."""

    class BoundedProtocol(GuardedProtocol):
        waiting = IdleConnections(limits)

    return BoundedProtocol


def _affordable(wanted: int) -> int:
    """As many connections as the system allows open files for this process; the limit is raised as far as possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, max(64, hard - _OWN_FILES))
