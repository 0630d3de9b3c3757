"""A service behind a URL as the other system of a lookup: one request for a batch of keys, with rows as the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from headrace.connectors.exchange import Service, legible
from headrace.core.errors import ConnectorError
from headrace.schema.legible import as_json


@dataclass(frozen=True)
class HttpAnswers:
    """Sends keys as a JSON array of objects; the service answers with an array of rows, each with its key."""

    service: Service
    method: str

    def __call__(self, keys: pa.Table) -> list[Any]:
        frame = pl.from_arrow(keys)
        assert isinstance(frame, pl.DataFrame)
        body = f"[{','.join(as_json(frame).to_list())}]"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        try:
            status, said = self.service.ask(self.method, self.service.path, body.encode(), headers)
        finally:
            # A call of a lookup has a thread of its own, and a connection is that of its thread.
            self.service.hang_up()
        if status >= 400:
            raise ConnectorError(f"answered {status}: {legible(said)}")
        rows = json.loads(said)
        if not isinstance(rows, list):
            raise ConnectorError(f"answered no array of rows: {legible(said)}")
        return rows
