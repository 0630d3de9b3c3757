"""A client of a served home: rows of views as Arrow, pandas or polars, SQL, and changes as they come, resumed after a lost connection."""

from __future__ import annotations

import base64
import http.client
import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pyarrow as pa

from headrace.core import html
from headrace.core.errors import ConnectorError
from headrace.serve.views.filters import RESERVED
from headrace.serve.views.formats import ARROW

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_PAGE = 10_000
_SHOWN = 20
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# A starting server reads its views first: it answers with this status, or not at all.
_LATER = frozenset({429, 502, 503, 504})
_PATIENCE = 60.0


@dataclass(frozen=True)
class Change:
    """A change of a view's row: `op` is insert, update or delete. `reset` says that every earlier row is gone."""

    op: str
    row: Mapping[str, Any]
    epoch: int
    reset: bool = False


class Connection:
    """A server, by its address. `token` may be part of the address, as the server prints it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        given = parse_qs(parts.query).get("token", [None])[0]
        self._base = f"{parts.scheme}://{parts.netloc}"
        if parts.scheme not in ("http", "https"):
            raise ConnectorError(f"{url!r} is not an address of a server", hint="http://127.0.0.1:7070/?token=…")
        self._token = token or given

    def view(self, name: str) -> ViewClient:
        """A view by its name."""
        return ViewClient(self, name)

    def views(self) -> list[dict[str, Any]]:
        """Every view: its job, columns, key, rows and epoch."""
        found: list[dict[str, Any]] = json.loads(self._get("/api/v1/views").read())
        return found

    def sql(self, query: str) -> pa.Table:
        """The rows of a SELECT over views."""
        answer = self._open("/api/v1/sql", {"Accept": ARROW, "Content-Type": "application/json"}, json.dumps({"query": query}).encode())
        return pa.ipc.open_stream(io.BytesIO(answer.read())).read_all()

    def _get(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        return self._open(path, headers or {})

    def _open(self, path: str, headers: Mapping[str, str], body: bytes | None = None, timeout: float = 150.0) -> Any:
        own = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = urllib.request.Request(f"{self._base}{path}", body, {**own, **headers})  # noqa: S310 - the scheme was checked
        try:
            return urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
        except urllib.error.HTTPError as error:
            problem = _problem(error)
            kind = Unreachable if error.code in _LATER else ConnectorError
            raise kind(f"{self._base} answered {error.code}: {problem.get('detail', error.reason)}", hint=problem.get("hint")) from error
        except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._base} cannot be reached: {error}", hint="is headrace serve running there?") from error


class Unreachable(ConnectorError):
    """The server does not answer; it may do so later."""


class ViewClient:
    """One view of a server."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self.name = connection, name
        self._path = f"/api/v1/views/{quote(name, safe='')}"

    def read(self, *, epoch: int | None = None, order: str | None = None, **conditions: Any) -> pa.Table:
        """All rows, or those with some values; with `epoch`, as soon as the view has reached it.

        Conditions are filters of the query string: `user="ada"`, `user=None`, `user=["ada", "bob"]`, `**{"views.gt": 5}`. Rows come in
        pages of 10,000: of a larger view that moves meanwhile, each page is as of its own epoch.
        """
        asked = {name: value for name, value in (("epoch", epoch), ("order", order)) if value is not None}
        chosen = _parameters(conditions)
        tables, cursor = list[pa.Table](), None
        while True:
            query = {**chosen, **asked, "limit": _PAGE, **({"cursor": cursor} if cursor else {})}
            answer = self._connection._get(f"{self._path}?{urlencode(query)}", {"Accept": ARROW})  # noqa: SLF001
            tables.append(pa.ipc.open_stream(io.BytesIO(answer.read())).read_all())
            cursor = answer.headers.get("X-Next-Cursor")
            if cursor is None:
                return pa.concat_tables(tables)

    def _repr_html_(self) -> str:
        """The view in a notebook: its columns and first rows."""
        answer = self._connection._get(f"{self._path}?limit={_SHOWN}", {"Accept": ARROW})  # noqa: SLF001
        table = pa.ipc.open_stream(io.BytesIO(answer.read())).read_all()
        rows = html.table(table.to_pylist(), table.column_names)
        return f"{html.part(self.name, html.schema(table.schema))}{html.part('first rows', rows)}"

    def to_pandas(self, **asked: Any) -> pd.DataFrame:
        """The same as a pandas frame."""
        return self.read(**asked).to_pandas()

    def to_polars(self, **asked: Any) -> pl.DataFrame:
        """The same as a polars frame."""
        import polars as pl

        frame = pl.from_arrow(self.read(**asked))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def changes(self, *, since: str | None = None, **conditions: Any) -> Iterator[Change]:
        """Every row as an insert, then each change as it comes, without end. A lost connection is resumed without gap or repeat.

        A server that does not come back within a minute is an error, `Unreachable`.
        """
        for message in self.messages(since=since, **conditions):
            yield from _changes(message)

    def messages(self, *, since: str | None = None, **conditions: Any) -> Iterator[dict[str, Any]]:
        """The messages themselves: snapshot, changes and progress, each with its `id`, from which `since` continues."""
        place, failed, heard_at = since, 0, time.monotonic()
        while True:
            try:
                for message in self._stream(place, conditions):
                    failed, place = 0, message["id"]
                    yield message
                    heard_at = time.monotonic()
            except Unreachable:
                failed += 1
                if time.monotonic() - heard_at > _PATIENCE:
                    raise
            time.sleep(_PAUSES[min(failed, len(_PAUSES) - 1)])

    def _stream(self, place: str | None, conditions: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": place} if place else {})}
        query = f"?{urlencode(_parameters(conditions))}" if conditions else ""
        # The server sends something every second.
        answer = self._connection._open(f"{self._path}{query}", headers, timeout=15.0)  # noqa: SLF001
        try:
            yield from _events(answer)
        except (OSError, ValueError, http.client.HTTPException):
            return
        finally:
            answer.close()


def connect(url: str, token: str | None = None) -> Connection:
    """Ask a server (`headrace serve`) for views and their changes.

    `url` is the address that the server prints, with its token; or give `token` separately.
    """
    return Connection(url, token)


def _parameters(conditions: Mapping[str, Any]) -> dict[str, str]:
    """Conditions with values of Python as parameters of a request."""
    return dict(_parameter(name, value) for name, value in conditions.items())


def _parameter(name: str, value: Any) -> tuple[str, str]:
    if name in RESERVED:
        raise ConnectorError(f"{name!r} is not a condition", hint=f"a column of that name: {name}.eq; all rows that pass are read")
    column, _, operator = name.rpartition(".")
    if value is None:
        if operator in ("eq", "ne"):
            return f"{column}.null", str(operator == "eq").lower()
        return f"{name}.null", "true"
    if isinstance(value, list | tuple | set | frozenset):
        texts = [_text(one) for one in value if one is not None]
        if not texts or len(texts) < len(value) or any("," in text for text in texts):
            raise ConnectorError(f"{name}={value!r} cannot be asked", why="a request has the values as text, with commas between")
        return name if operator == "in" else f"{name}.in", ",".join(texts)
    return name, _text(value)


def _text(value: Any) -> str:
    """A value as the server reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date) else str(value)


def _events(answer: Any) -> Iterator[dict[str, Any]]:
    """The complete events of a stream; one that was cut is left out."""
    place, data = None, list[str]()
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line.startswith("id: "):
            place = line[4:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and data:
            message = json.loads("\n".join(data))
            if "type" not in message:
                return
            yield {**message, "id": place}
            place, data = None, []


def _changes(message: Mapping[str, Any]) -> Iterator[Change]:
    if message["type"] == "snapshot":
        if message["first"]:
            yield Change("reset", {}, message["epoch"], reset=True)
        yield from (Change("insert", row, message["epoch"]) for row in message["rows"])
    elif message["type"] == "changes":
        yield from (Change(change["op"], change["row"], message["epoch"]) for change in message["changes"])


def _problem(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(error.read())
    except ValueError:
        return {}
    return found
