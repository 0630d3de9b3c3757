"""Requests over HTTP to a service that may be away, on connections that a process keeps open."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from headrace.connectors.client_cache import ClientCache
from headrace.core.errors import SettingsError
from headrace.core.secret import Secret

_SECRET = ("authorization", "token", "key", "cookie", "secret")
_MOST_READ, _SHOWN = 1 << 26, 300
_connections = ClientCache[http.client.HTTPConnection](close=http.client.HTTPConnection.close)


class Away(Exception):
    """The service did not answer, or asks to be tried again."""


@dataclass(frozen=True)
class Service:
    """The address of a service, and the headers of every request."""

    url: str
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    timeout: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("a sink over HTTP needs an address that begins with http:// or https://", hint="give the whole URL")
        if parts.password is not None:
            raise SettingsError(
                "the URL of a sink contains a password", why="URLs appear in messages", hint='headers={"Authorization": "..."}'
            )

    @property
    def path(self) -> str:
        """The path of the address, with its query."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and body of the answer to one request; raises `Away` if there is none, or if it asks to be tried again."""
        known = {name: value.reveal() if isinstance(value, Secret) else value for name, value in self.headers.items()}
        connection = self._connection()
        try:
            connection.request(method, path, body, known | dict(headers))
            answer = connection.getresponse()
            said = answer.read(_MOST_READ)
        except (OSError, http.client.HTTPException) as error:
            _connections.drop(self._purpose)
            raise Away(str(error) or type(error).__name__) from error
        if answer.status == http.client.TOO_MANY_REQUESTS or answer.status >= 500:
            _connections.drop(self._purpose)
            raise Away(f"answered {answer.status}: {legible(said)}")
        return answer.status, said

    def hang_up(self) -> None:
        """Close the connection of this thread, if it has one."""
        _connections.drop(self._purpose)

    @property
    def _purpose(self) -> tuple[str, int]:
        # A connection carries one exchange at a time: each thread has its own.
        return self.url, threading.get_ident()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        host, port, patience = parts.hostname, parts.port, self.timeout.total_seconds()
        return _connections.get(self._purpose, lambda: kind(host, port, timeout=patience))

    def __str__(self) -> str:
        return self.url


def service(url: str, headers: Mapping[str, str | Secret] | None, timeout: timedelta = timedelta(seconds=30)) -> Service:
    """A service, with headers that may contain a secret hidden.

    >>> service("https://example.org", {"Authorization": "Bearer s3same"}).headers
    {'Authorization': Secret(***)}
    """
    hidden = {name: Secret(value) if isinstance(value, str) and _secret(name) else value for name, value in (headers or {}).items()}
    return Service(url, hidden, timeout)


def legible(said: bytes) -> str:
    """The beginning of an answer as text."""
    return said[:_SHOWN].decode(errors="replace")


def _secret(header: str) -> bool:
    return any(part in header.lower() for part in _SECRET)
