"""An HTTP service as an output of the engine: one request for each record, with a key by which the service recognizes a repetition."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa

from headrace.connectors.exchange import Away, legible
from headrace.connectors.http.declaration import HttpService
from headrace.connectors.output import Changes, DeadLetters, Writer
from headrace.connectors.patience import patiently
from headrace.core import failpoints
from headrace.core.errors import ConnectorError
from headrace.schema.legible import as_json


@dataclass(frozen=True)
class HttpOutput:
    """A service, and the columns of the records sent to it."""

    target: HttpService
    columns: pa.Schema

    def prepare(self, tasks: int) -> None:
        """There is nothing to prepare: the service is asked only when there is a record."""

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        frame = changes.frame.select(self.columns.names)
        refused: dict[int, str] = {}
        for index, body in enumerate(as_json(frame).to_list()):
            # The run is not part of it: a repetition by a later run is the same request.
            reason = self._sent(f"{writer.name}/{epoch}/{index}", body.encode())
            if reason is not None:
                refused[index] = reason
        if refused:
            dead(frame[list(refused)], list(refused.values()))
        return True

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: an answered request is done."""

    def last_epoch(self, writer: Writer) -> int | None:
        """None: only the service knows what it has done."""
        return None

    def _sent(self, key: str, body: bytes) -> str | None:
        """Send a record until it is answered; returns the reason if it was refused."""
        failpoints.reach("http.request.before")
        try:
            status, said = patiently(self.target.patience, lambda: self._asked(key, body), (Away,))
        except Away as error:
            raise ConnectorError(f"{self.target} failed: {error}", hint="check the service; the next run sends the epoch again") from error
        failpoints.reach("http.request.after")
        return None if status < 400 else f"answered {status}: {said}"

    def _asked(self, key: str, body: bytes) -> tuple[int, str]:
        service = self.target.service
        headers = {"Content-Type": "application/json", "Idempotency-Key": quote(key, safe="/.-_")}
        status, said = service.ask(self.target.method, service.path, body, headers)
        return status, legible(said)
