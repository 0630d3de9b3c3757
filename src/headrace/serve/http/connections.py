"""Connections of a server: one that sends no request in time, or reads nothing of its answer, is closed, and where there are too many, the
one that waits longest.

A client that opens connections and says nothing, or says it a byte at a time, holds none that another client needs.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections import OrderedDict
from typing import Any, ClassVar

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.serve.http.limits import ServerLimits

# Files of the log, of caches, and of the program itself.
_OWN_FILES = 512
# The parser has no bound of its own on the head of a request, nor on what follows its body.
_LONGEST_HEAD = 64 * 1024
# To linger, for no time.
_RESET = struct.pack("ii", 1, 0)


class IdleConnections:
    """The connections of one server without a request at work, the one that waits longest first."""

    def __init__(self, limits: ServerLimits) -> None:
        self.most = _affordable(limits.connections)
        self.patience, self.stalled = limits.patience, limits.stalled
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


class _Parser(httptools.HttpRequestParser):
    """A parser that takes a request to change to a protocol which is not spoken here as one without that: it would take no body then.

    Java's client begins each connection with a request to change to HTTP/2.
    """

    def __init__(self, connection: GuardedProtocol) -> None:
        super().__init__(connection)
        # A client may send more behind its last request; the answer to it is still due.
        self.set_dangerous_leniencies(lenient_data_after_close=True)
        self._connection = connection

    def feed_data(self, data: bytes) -> None:  # type: ignore[override] # as asyncio gives them
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._connection.asks_for_websocket():
                raise
            head = self._connection.head_without_upgrade()
            self._connection.parser = _Parser(self._connection)
            self._connection.parser.feed_data(head + data[upgrade.args[0] :])


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds: the size of a request's head, the time until it is there, the time without a byte read, connections."""

    waiting: ClassVar[IdleConnections]
    # Bytes since the last head or part of a body was complete.
    _incomplete = 0
    # The next look at a client that does not read as fast as it is answered.
    _unread: asyncio.TimerHandle | None = None

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser = _Parser(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.waiting.add(self)
        self.waiting.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.lost(self)
        self._forget_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_at_unread(None)

    def resume_writing(self) -> None:
        self._forget_unread()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        self._incomplete += len(data)
        super().data_received(data)
        if self._incomplete > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"The head of a request has at most {_LONGEST_HEAD:,} bytes.")
        if self.cycle is not before:
            self.waiting.remove(self)
            self._wait_if_idle()

    def on_headers_complete(self) -> None:
        self._incomplete = 0
        if not self.parser.should_upgrade() or self.asks_for_websocket():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._incomplete = 0
        super().on_body(body)

    def handle_websocket_upgrade(self) -> None:
        self.waiting.remove(self)
        super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_if_idle()

    def asks_for_websocket(self) -> bool:
        return self._should_upgrade()

    def head_without_upgrade(self) -> bytes:
        """The head of the request for the same in HTTP/1.1."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise httptools.HttpParserError("this is no proxy")
        headers = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([b"%b %b HTTP/%b" % (method, self.url, version), *headers, b"", b""])

    def _look_at_unread(self, before: int | None) -> None:
        """Close the connection of a client that has read nothing since the last look; a slow one reads something."""
        unread = self.transport.get_write_buffer_size()
        if unread == before:
            # By a reset: the system would keep for minutes what it has not sent.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(self.waiting.stalled, self._look_at_unread, unread)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def _wait_if_idle(self) -> None:
        """Wait for the next request, unless one is at work that came before this answer was complete."""
        if self.cycle.response_complete and not self.transport.is_closing():
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
