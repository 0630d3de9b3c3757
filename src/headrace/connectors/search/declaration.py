"""Indexes for searching as a user declares them; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from headrace.connectors.exchange import Service, service
from headrace.connectors.search.documents import searched
from headrace.connectors.targets import Changeable, need_client
from headrace.core.durations import duration
from headrace.core.errors import SchemaError, SettingsError
from headrace.core.names import Names, listed

if TYPE_CHECKING:
    from headrace.connectors.search.output import SearchOutput
    from headrace.connectors.search.remote import RemoteOutput

_OWN = "_headrace_"


@dataclass(frozen=True)
class SearchDirectory(Changeable):
    """An index in a directory; see `search`."""

    directory: Path
    key: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the columns cannot be searched, or the library of the index is missing: before anything runs."""
        need_client("tantivy", "the library of the search index", "search")
        searched(columns, self.fields)
        if taken := [name for name in columns.names if name.startswith(_OWN)]:
            raise SchemaError(f"columns {', '.join(taken)}: names of the index itself begin so", hint="call them otherwise")

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
class SearchService(Changeable):
    """An index of OpenSearch or Elasticsearch; see `search`."""

    service: Service
    index: str
    key: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None
    patience: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        if not self.index or self.index != self.index.lower() or set(self.index) & set('\\/*?"<>| ,#:') or self.index[0] in "-_+.":
            raise SettingsError(f"{self.index!r} is no name of an index", hint='index="products": lower case, without signs like / or *')

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the columns cannot be searched: before anything runs."""
        searched(columns, self.fields)

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> RemoteOutput:
        """The index as a job writes it."""
        from headrace.connectors.search.remote import RemoteOutput

        return RemoteOutput(self, columns, key)

    def find(self, text: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """The rows that match best; what was written becomes visible when the index is refreshed, each second by default."""
        from headrace.connectors.search.remote import found

        return found(self, text, limit)

    def __str__(self) -> str:
        return f"index {self.index} of {self.service}"


def search(
    place: str | Path,
    *,
    index: str | None = None,
    key: Names = (),
    fields: Names | None = None,
    **options: Any,
) -> SearchDirectory | SearchService:
    """An index for searching text as the target of a sink: results as documents, the latest of each key, or fact by fact.

    `place` is a directory, in which an index is made, or the address of OpenSearch or Elasticsearch, with the name of an `index` there.
    Words are looked for in `fields`, by default in every text; numbers, moments and truths can be asked for by their name. `find` looks
    something up: `find("red shoes")`, `find("name:shoes AND price:[10 TO 20]")`, `find("*")`; rows come as they stand in JSON.

    Options of a service are `headers`, which are sent with every request, and of which those that may hold a secret show nowhere, and
    `patience`, how long a service that is away is waited for.

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
        patience = duration(options.pop("patience", "2 minutes"))
        return SearchService(service(str(place), options.pop("headers", None)), index, columns, looked, patience, **options)
    if index is not None or options:
        raise SettingsError("an index in a directory has no name and no options of a service", hint="give the directory of each index")
    return SearchDirectory(Path(place), columns, looked)
