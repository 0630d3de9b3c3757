"""A service behind a URL as a user declares it; nothing is connected here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.exchange import Service, service
from headrace.connectors.targets import FactsOnly
from headrace.core.durations import Duration, duration
from headrace.core.secret import Secret

if TYPE_CHECKING:
    from headrace.connectors.http.output import HttpOutput


@dataclass(frozen=True)
class HttpService(FactsOnly):
    """Where requests go, and what stands in them; see `http`."""

    service: Service
    method: str = "POST"
    patience: timedelta = timedelta(minutes=2)

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Every record can be written as JSON."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> HttpOutput:
        """The service as a job writes it."""
        from headrace.connectors.http.output import HttpOutput

        return HttpOutput(self, columns)

    def __str__(self) -> str:
        return f"{self.method} {self.service}"


def http(
    url: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str | Secret] | None = None,
    timeout: Duration = "30 seconds",
    patience: Duration = "2 minutes",
) -> HttpService:
    """A service as the target of a sink of facts: one request a record, with the record as a JSON object.

    Each request has an `Idempotency-Key` of its own, the same when it is repeated after a crash: a service that heeds it is written to
    exactly once, any other at least once. Answers 429 and 5xx, and a service that is away, are tried again for as long as `patience`; a
    record that is answered otherwise goes to the dead letters of the sink. Headers that may hold a secret show nowhere.

    >>> str(http("https://example.org/alerts", headers={"Authorization": "Bearer s3same"}))
    'POST https://example.org/alerts'
    """
    return HttpService(service(url, headers, duration(timeout)), method.upper(), duration(patience))
