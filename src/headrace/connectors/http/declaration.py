"""A service behind a URL as a user declares it; nothing is connected here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.exchange import Service, service
from headrace.core.durations import Duration, duration
from headrace.core.promise import Promise, Takes
from headrace.core.secret import Secret
from headrace.core.where import says_where
from headrace.plan.joins.remote_lookup import Question

if TYPE_CHECKING:
    from headrace.connectors.http.answers import HttpAnswers
    from headrace.connectors.http.output import HttpOutput


@dataclass(frozen=True)
class HttpService:
    """The address of requests, and their content; see `http`."""

    service: Service
    method: str = "POST"
    patience: timedelta = timedelta(minutes=2)

    @property
    def key(self) -> tuple[str, ...]:
        return ()

    @property
    def promise(self) -> Promise:
        return Promise(
            Takes.FACTS,
            "exactly once if the service honors `Idempotency-Key`, else at least once",
            "a key for each record, the same when it is repeated",
            "record by record",
        )

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Every record can be written as JSON."""

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> HttpOutput:
        """The service as a job writes it."""
        from headrace.connectors.http.output import HttpOutput

        return HttpOutput(self, columns)

    def answers(self, question: Question) -> HttpAnswers:
        """The service as a lookup asks it."""
        from headrace.connectors.http.answers import HttpAnswers

        return HttpAnswers(self.service, self.method)

    def __str__(self) -> str:
        return f"{self.method} {self.service}"


@says_where
def http(
    url: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str | Secret] | None = None,
    timeout: Duration = "30 seconds",
    patience: Duration = "2 minutes",
) -> HttpService:
    """A service as the target of a sink of facts: one request for each record, with the record as a JSON object.

    Each request has its own `Idempotency-Key`, which stays the same when the request is repeated after a crash: a service that respects it
    is written to exactly once, any other at least once. Answers 429 and 5xx, and a service that is away, are tried again for as long as
    `patience`; a record with any other error answer goes to the dead letters of the sink. Headers that may contain a secret are never
    shown.

    In `stream.lookup(hr.http(url), ...)` a request has a JSON array of keys, each an object, and the answer an array of rows.

    >>> str(http("https://example.org/alerts", headers={"Authorization": "Bearer s3same"}))
    'POST https://example.org/alerts'
    """
    return HttpService(service(url, headers, duration(timeout)), method.upper(), duration(patience))
