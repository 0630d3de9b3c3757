"""Indexes for searching as a user declares them; nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from headrace.connectors.exchange import Service, service
from headrace.connectors.search.documents import searched
from headrace.connectors.targets import AT_ONCE, STAGED, need_client
from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.promise import Promise, Takes
from headrace.core.secret import Secret
from headrace.core.where import says_where

if TYPE_CHECKING:
    from headrace.connectors.search.output import SearchOutput
    from headrace.connectors.search.remote import RemoteOutput

_OWN = "_headrace_"


@dataclass(frozen=True)
class SearchDirectory:
    """An index in a directory; see `search`."""

    directory: Path
    key: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None

    @property
    def promise(self) -> Promise:
        return Promise(
            Takes.LATEST, "exactly once", f"{STAGED} makes one commit of the index, with the epoch in a document of its own", AT_ONCE
        )

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the columns cannot be searched, or the library of the index is missing: before anything runs."""
        need_client("tantivy", "the library of the search index", "search")
        searched(columns, self.fields)
        if taken := [name for name in columns.names if name.startswith(_OWN)]:
            raise SchemaError(f"columns {', '.join(taken)}: names of the index itself begin so", hint="rename them")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> SearchOutput:
        """The index as a job writes it."""
        from headrace.connectors.search.output import SearchOutput

        return SearchOutput(self.directory, columns, key, searched(columns, self.fields))

    def find(self, text: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """The rows that match best, those of the last published epoch at the latest; see `search`."""
        from headrace.connectors.search.output import found

        need_client("tantivy", "the library of the search index", "search")
        return found(self.directory, text, self.fields, limit)

    def __str__(self) -> str:
        return f"search index {self.directory}"


@dataclass(frozen=True)
class SearchService:
    """An index of OpenSearch or Elasticsearch; see `search`."""

    service: Service
    index: str
    key: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None
    patience: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        if not self.index or self.index != self.index.lower() or set(self.index) & set('\\/*?"<>| ,#:') or self.index[0] in "-_+.":
            raise SettingsError(
                f"{self.index!r} is not a name of an index", hint='index="products": lower case, without characters like / or *'
            )

    @property
    def promise(self) -> Promise:
        return Promise(
            Takes.LATEST,
            "exactly once",
            "documents by key (facts: by task, epoch and position), with the epoch as external version: the index refuses older and "
            "repeated ones",
            "record by record, at a refresh",
        )

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the columns cannot be searched: before anything runs."""
        searched(columns, self.fields)

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> RemoteOutput:
        """The index as a job writes it."""
        from headrace.connectors.search.remote import RemoteOutput

        return RemoteOutput(self, columns, key)

    def find(self, text: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """The rows that match best; written rows become visible when the index is refreshed, each second by default."""
        from headrace.connectors.search.remote import found

        return found(self, text, limit)

    def __str__(self) -> str:
        return f"index {self.index} of {self.service}"


@says_where
def search(  # noqa: PLR0913 - one option for each thing that may differ
    place: str | Path,
    *,
    index: str | None = None,
    key: Names = (),
    fields: Names | None = None,
    headers: Mapping[str, str | Secret] | None = None,
    patience: Duration | None = None,
) -> SearchDirectory | SearchService:
    """An index for searching text as the target of a sink: results as documents, the latest of each key, or fact by fact.

    `place` is a directory, in which an index is created, or the address of OpenSearch or Elasticsearch, with the name of an `index` there.
    Words are looked for in `fields`, by default in every text; numbers, times and booleans by the name of their column. `find` searches:
    `find("red shoes")`, `find("name:shoes AND price:[10 TO 20]")`, `find("*")`; rows come as they are in JSON.

    A service also takes `headers`, sent with every request (headers that may contain a secret are never shown), and `patience`: how long a
    job waits for a service that is away, two minutes by default.

    >>> str(search("products", key="id"))
    'search index products'
    >>> str(search("http://localhost:9200", index="products"))
    'index products of http://localhost:9200'
    """
    columns = listed(key)
    looked = None if fields is None else listed(fields)
    if urlsplit(str(place)).scheme in ("http", "https"):
        if index is None:
            raise SettingsError("a search service has many indexes", hint='search("http://...", index="products")')
        waits = duration("2 minutes" if patience is None else patience)
        return SearchService(service(str(place), headers), index, columns, looked, waits)
    if index is not None or headers is not None or patience is not None:
        raise SettingsError("an index in a directory has no name and no options of a service", hint="give the directory of each index")
    return SearchDirectory(Path(place), columns, looked)
