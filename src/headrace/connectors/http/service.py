"""A service behind a URL as a user declares it; nothing is connected here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa

from headrace.connectors.targets import FactsOnly
from headrace.core.durations import Duration, duration
from headrace.core.errors import SettingsError
from headrace.core.secret import Secret

if TYPE_CHECKING:
    from headrace.connectors.http.output import HttpOutput

_SECRET = ("authorization", "token", "key", "cookie", "secret")


@dataclass(frozen=True)
class HttpService(FactsOnly):
    """Where requests go, and what stands in them; see `http`."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    timeout: timedelta = timedelta(seconds=30)
    patience: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("a sink over HTTP needs an address that begins with http:// or https://", hint="give the whole URL")
        if parts.password is not None:
            raise SettingsError("the URL of a sink has a password in it", why="URLs are shown", hint='headers={"Authorization": "..."}')

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Every record can be written as JSON."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> HttpOutput:
        """The service as a job writes it."""
        from headrace.connectors.http.output import HttpOutput

        return HttpOutput(self, columns)

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


def http(
    url: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str | Secret] | None = None,
    timeout: Duration = "30 seconds",
    patience: Duration = "1 minute",
) -> HttpService:
    """A service as the target of a sink of facts: one request a record, with the record as a JSON object.

    Each request has an `Idempotency-Key` of its own, the same when it is repeated after a crash: a service that heeds it is written to
    exactly once, any other at least once. Answers 429 and 5xx, and a service that is away, are tried again for as long as `patience`; a
    record that is answered otherwise goes to the dead letters of the sink. Headers that may hold a secret show nowhere.

    >>> http("https://example.org/alerts", headers={"Authorization": "Bearer s3same"}).headers
    {'Authorization': Secret(***)}
    """
    given = (headers or {}).items()
    hidden = {name: Secret(value) if isinstance(value, str) and _secret(name) else value for name, value in given}
    return HttpService(url, method.upper(), hidden, duration(timeout), duration(patience))


def _secret(header: str) -> bool:
    return any(part in header.lower() for part in _SECRET)
