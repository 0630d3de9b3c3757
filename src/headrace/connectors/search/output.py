"""An index in a directory as an output of the engine: each epoch is one commit, with its number in a document of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import tantivy

from headrace.connectors.output import Writer
from headrace.connectors.patience import patiently
from headrace.connectors.search.documents import names
from headrace.connectors.staged_output import StagedOutput
from headrace.connectors.staging import REMOVED
from headrace.core import failpoints
from headrace.core.errors import ConnectorError, SchemaError, SettingsError
from headrace.schema.legible import as_json

# The document of a row has its name and the row itself; the document of a job has the name of its sink, and its epoch.
_NAME, _ROW, _SINK, _EPOCH = "_headrace_name", "_headrace_row", "_headrace_sink", "_headrace_epoch"
_OLDEST, _NEWEST = datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
_MEMORY = 50_000_000
# Another driver of the job may be about to end.
_PATIENCE = timedelta(seconds=30)


class _Locked(Exception):
    """Another process writes to the index."""


@dataclass(frozen=True)
class SearchOutput(StagedOutput):
    """An index by its directory, the columns of its rows, the key by which they replace each other, and the searched columns."""

    directory: Path
    columns: pa.Schema
    key: tuple[str, ...]
    fields: tuple[str, ...]
    roll: timedelta | None = None

    def make(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            tantivy.Index(self._schema(), path=str(self.directory))
        except ValueError as error:
            raise SchemaError(
                f"the search index {self.directory} has other columns than the results: {error}",
                hint="use another directory, or remove it and let a new job fill it again",
            ) from error

    @property
    def staged_in(self) -> Path:
        # The index knows its own files by name and leaves others alone.
        return self.directory / "staged"

    def committed(self, job: str, sink: str) -> int:
        index = _opened(self.directory)
        return _epoch(index, f"{job}/{sink}")

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        sink = f"{writer.job}/{writer.sink}"
        index = _opened(self.directory)
        with _writing(index) as into:
            # Only the process that holds the index can be certain that no other has made the commit by now.
            index.reload()
            if _epoch(index, sink) >= epoch:
                return
            self._fill(into, rows)
            into.delete_documents_by_term(_SINK, sink)
            mark = tantivy.Document()
            mark.add_text(_SINK, sink)
            mark.add_integer(_EPOCH, epoch)
            into.add_document(mark)
            failpoints.reach("search.commit.before")
            into.commit()
            failpoints.reach("search.commit.after")

    def _fill(self, into: tantivy.IndexWriter, rows: pa.Table) -> None:
        frame = pl.DataFrame(rows)
        if self.key:
            for gone in names(frame, self.key):
                into.delete_documents_by_term(_NAME, gone)
            frame = frame.filter(~pl.col(REMOVED)).drop(REMOVED)
        called: Iterable[str | None] = names(frame, self.key) if self.key else [None] * frame.height
        indexed = {name: add for name in self.columns.names if (add := self._adding(name))}
        values = frame.select(list(indexed)).iter_rows() if indexed else iter([()] * frame.height)
        for name, text, row in zip(called, as_json(frame).to_list(), values, strict=True):
            document = tantivy.Document()
            if name is not None:
                document.add_text(_NAME, name)
            document.add_bytes(_ROW, text.encode())
            for (column, add), value in zip(indexed.items(), row, strict=True):
                if _fits(value):
                    getattr(document, add)(column, value)
            into.add_document(document)

    def _schema(self) -> tantivy.Schema:
        builder = tantivy.SchemaBuilder()
        for name in (_NAME, _SINK):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_bytes_field(_ROW, stored=True)
        builder.add_integer_field(_EPOCH, stored=True)
        for name in self.columns.names:
            if name in self.fields:
                builder.add_text_field(name)
            elif pa.types.is_string(self.columns.field(name).type):
                builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
            elif add := self._adding(name):
                getattr(builder, f"{add}_field")(name, indexed=True, fast=True)
        return builder.build()

    def _adding(self, name: str) -> str | None:
        """The method that adds a value of a column to a document; None if the column is not searched."""
        kind = self.columns.field(name).type
        found = {pa.types.is_string: "add_text", pa.types.is_integer: "add_integer", pa.types.is_floating: "add_float"}
        found |= {pa.types.is_boolean: "add_boolean", pa.types.is_timestamp: "add_date"}
        return next((add for fits, add in found.items() if fits(kind)), None)


def found(directory: Path, text: str, fields: Sequence[str] | None, limit: int) -> list[dict[str, Any]]:
    """The rows of an index that match best."""
    index = _opened(directory)
    looked = list(fields) if fields is not None else _words(directory)
    try:
        asked = index.parse_query(text, looked)
    except ValueError as error:
        hint = 'words, "a phrase", column:word, AND, OR, column:[1 TO 9]'
        raise SettingsError(f"{text!r} is not a query: {error}", hint=hint) from error
    marks = tantivy.Query.regex_query(index.schema, _SINK, ".*")
    rows = tantivy.Query.boolean_query([(tantivy.Occur.Must, asked), (tantivy.Occur.MustNot, marks)])
    searcher = index.searcher()
    hits = searcher.search(rows, limit, count=False).hits
    return [json.loads(bytes(searcher.doc(address)[_ROW][0])) for _, address in hits]


def _words(directory: Path) -> list[str]:
    described = json.loads((directory / "meta.json").read_text())["schema"]
    return [one["name"] for one in described if one["type"] == "text" and one["options"]["indexing"]["tokenizer"] == "default"]


def _opened(directory: Path) -> tantivy.Index:
    try:
        return tantivy.Index.open(str(directory))
    except ValueError as error:
        raise ConnectorError(f"the search index {directory} cannot be read: {error}", hint="has a job made it?") from error


def _epoch(index: tantivy.Index, sink: str) -> int:
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.term_query(index.schema, _SINK, sink), 1, count=False).hits
    return int(searcher.doc(hits[0][1])[_EPOCH][0]) if hits else -1


@contextmanager
def _writing(index: tantivy.Index) -> Iterator[tantivy.IndexWriter]:
    """A writer holds the index alone, and for one commit only, so that a run that hangs elsewhere does not block its successor."""

    def attempt() -> tantivy.IndexWriter:
        try:
            return index.writer(_MEMORY, 1)
        except ValueError as error:
            raise _Locked(str(error)) from error

    try:
        writer = patiently(_PATIENCE, attempt, (_Locked,))
    except _Locked as error:
        raise ConnectorError(f"the search index is held by another writer: {error}", hint="wait until it ends, or stop it") from error
    # A crash in a commit leaves files that the index does not know, and the next commit may choose the same name for one of its own.
    writer.garbage_collect_files()
    try:
        yield writer
    except BaseException:
        writer.rollback()
        raise
    finally:
        # This merges small segments and releases the index.
        writer.wait_merging_threads()


def _fits(value: object) -> bool:
    if isinstance(value, datetime):
        return _OLDEST <= (value if value.tzinfo else value.replace(tzinfo=UTC)) <= _NEWEST
    return value is not None and not (isinstance(value, float) and math.isnan(value))
