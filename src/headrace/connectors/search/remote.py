"""An index of OpenSearch or Elasticsearch as an output of the engine: the version of a document is the epoch that wrote it.

A document accepts only higher versions, so neither a repetition nor a replaced run changes it. The version begins with the number of the
job in the index: a job that fills the index again comes after the earlier ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.connectors.exchange import Away, legible
from headrace.connectors.output import Changes, DeadLetters, Writer
from headrace.connectors.patience import patiently
from headrace.connectors.search.declaration import SearchService
from headrace.connectors.search.documents import names, searched
from headrace.connectors.search.writer_progress import ProgressDocuments
from headrace.core import failpoints
from headrace.core.errors import ConnectorError, SchemaError, SettingsError
from headrace.schema.legible import as_json

_JSON, _LINES = {"Content-Type": "application/json"}, {"Content-Type": "application/x-ndjson"}
_MOST_BYTES, _MOST_DOCUMENTS = 5_000_000, 5_000
_CONFLICT = 409
# An epoch fits into 40 bits; 22 more bits of a version, which is a positive long, number the jobs.
_EPOCHS = 1 << 40
# Until then, a removed document still refuses older versions; by default that is one minute.
_REMEMBERED = "1h"


@dataclass(frozen=True)
class RemoteOutput:
    """An index, the columns of its documents, and the key by which they replace each other."""

    target: SearchService
    columns: pa.Schema
    key: tuple[str, ...]

    def prepare(self, tasks: int) -> None:
        status, said = asked(self.target, "PUT", f"/{self.target.index}", self._definition())
        if status >= 400 and "resource_already_exists_exception" not in json.dumps(said):
            raise SchemaError(f"{self.target} could not be created: {json.dumps(said)[:300]}", hint="check its name, and the columns")
        self._documents().prepare()

    def write(self, writer: Writer, epoch: int, changes: Changes, dead: DeadLetters) -> bool:
        documents = self._documents()
        progress = documents.enter(writer)
        if progress.epoch >= epoch:
            return False
        version = documents.number(f"{writer.job}/{writer.sink}") * _EPOCHS + epoch
        refused: dict[int, str] = {}
        for first, lines in _parts(self._actions(writer, epoch, changes, version)):
            failpoints.reach("search.bulk.before")
            refused |= {first + number: reason for number, reason in self._sent(lines).items()}
            failpoints.reach("search.bulk.after")
        if refused:
            dead(changes.frame[list(refused)], list(refused.values()))
        documents.leave(writer, progress, epoch)
        return True

    def publish(self, job: str, sink: str, epoch: int) -> None:
        """There is nothing to publish: readers see written rows when the index is refreshed."""

    def last_epoch(self, writer: Writer) -> int | None:
        epoch = self._documents().of(writer).epoch
        return None if epoch < 0 else epoch

    def _documents(self) -> ProgressDocuments:
        return ProgressDocuments(self.target.index, lambda method, path, body: asked(self.target, method, path, body))

    def _actions(self, writer: Writer, epoch: int, changes: Changes, version: int) -> Iterator[bytes]:
        """The action for each record, as the lines of a bulk request, in order."""
        frame = changes.frame.select(self.columns.names)
        # A fact is identified by its place in its epoch, which is the same in a repetition.
        called = names(frame, self.key) if self.key else [f"{writer.name}/{epoch}/{index}" for index in range(frame.height)]
        removed = changes.removed.to_list() if changes.removed is not None else [False] * frame.height
        for name, gone, text in zip(called, removed, as_json(frame).to_list(), strict=True):
            what = {"_id": name, "version": version, "version_type": "external"}
            yield f"{json.dumps({'delete': what})}\n".encode() if gone else f"{json.dumps({'index': what})}\n{text}\n".encode()

    def _sent(self, lines: bytes) -> dict[int, str]:
        """The refused documents, with reasons; one that is already stored is not refused."""
        status, said = asked(self.target, "POST", f"/{self.target.index}/_bulk", lines)
        if status >= 400:
            raise self._failure(json.dumps(said)[:300])
        answers = [next(iter(item.values())) for item in said["items"]] if said["errors"] else []
        if waiting := [answer for answer in answers if answer["status"] == 429 or answer["status"] >= 500]:
            raise self._failure(json.dumps(waiting[0].get("error"))[:300])
        return {number: _reason(one) for number, one in enumerate(answers) if "error" in one and one["status"] != _CONFLICT}

    def _failure(self, why: str) -> ConnectorError:
        return ConnectorError(f"writing to {self.target} failed: {why}", hint="check the service; the next run repeats the epoch")

    def _definition(self) -> bytes:
        words = searched(self.columns, self.target.fields)
        kinds = {column.name: kind for column in self.columns if (kind := _kind(column, words))}
        return json.dumps({"settings": {"gc_deletes": _REMEMBERED}, "mappings": {"properties": kinds}}).encode()


def found(target: SearchService, text: str, limit: int) -> list[dict[str, Any]]:
    """The rows of an index that match best."""
    query: dict[str, Any] = {"query": text, "lenient": True, "default_operator": "or"}
    if target.fields:
        query["fields"] = list(target.fields)
    body = json.dumps({"query": {"query_string": query}, "size": limit}).encode()
    status, said = asked(target, "POST", f"/{target.index}/_search", body)
    if status >= 400:
        raise SettingsError(f"{text!r} is not a query for {target}: {json.dumps(said)[:300]}", hint="check the query and index=")
    return [hit["_source"] for hit in said["hits"]["hits"]]


def asked(target: SearchService, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """The status and the answer of a service; one that is away is waited for."""
    kind = _LINES if path.endswith("/_bulk") else _JSON
    try:
        status, said = patiently(target.patience, lambda: target.service.ask(method, path, body, kind), (Away,))
    except Away as error:
        raise ConnectorError(f"{target} failed: {error}", hint="check the service; the next run repeats the epoch") from error
    try:
        return status, json.loads(said) if said else None
    except json.JSONDecodeError as error:
        raise ConnectorError(f"{target} answered {status}: {legible(said)}", hint="is it OpenSearch or Elasticsearch?") from error


def _parts(actions: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of requests, in sizes that a service accepts, each with the number of its first document."""
    first, held, size = 0, list[bytes](), 0
    for line in actions:
        if held and (size + len(line) > _MOST_BYTES or len(held) == _MOST_DOCUMENTS):
            yield first, b"".join(held)
            first, held, size = first + len(held), [], 0
        held.append(line)
        size += len(line)
    if held:
        yield first, b"".join(held)


def _reason(answer: dict[str, Any]) -> str:
    error = answer["error"]
    cause = error.get("caused_by", {}).get("reason")
    return f"{error['reason']}: {cause}" if cause else str(error["reason"])


def _kind(column: pa.Field, words: tuple[str, ...]) -> dict[str, Any] | None:
    """The mapping of a column; for types not listed here, the service chooses it."""
    exact = {"type": "keyword", "ignore_above": 8191}
    if pa.types.is_string(column.type):
        return {"type": "text", "fields": {"exact": exact}} if column.name in words else exact
    known = {pa.types.is_integer: "long", pa.types.is_floating: "double", pa.types.is_boolean: "boolean", pa.types.is_binary: "binary"}
    known |= {pa.types.is_timestamp: "date", pa.types.is_date: "date"}
    return next(({"type": name} for fits, name in known.items() if fits(column.type)), None)
