"""Pull and push: views over HTTP, server-sent events and WebSocket."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import polars as pl
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from headrace.core.columns.schema import ddl
from headrace.operators.expressions.dtypes import dtype
from headrace.serve.http.numbers import number
from headrace.serve.http.problems import Problem
from headrace.serve.views.filters import Query, cursor_of, page_of, query_of, value_of
from headrace.serve.views.followed import Followed
from headrace.serve.views.formats import EVENTS, JSON, ResponseFormat, accepted, asks_for_events
from headrace.serve.views.hub import Hub
from headrace.serve.views.key_reads import Key, KeyReads, key_frame
from headrace.serve.views.subscription import Subscriptions, check_place

_WAIT = 30.0
_MOST_OF_PREFIX = 10_000
_VARY = {"Vary": "Accept"}
# The codes with which a WebSocket is closed, by the status that HTTP would answer with.
_STALLED, _CLOSED = 4408, {400: 4400, 404: 4404, 429: 4429, 503: 4503}


class ViewRoutes:
    """Handlers of everything under /api/v1/views."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._subscriptions = Subscriptions(hub)
        self._key_reads = KeyReads()

    async def list(self, request: Request) -> Response:
        """Every view: its job, columns, key, rows and epoch."""
        return JSONResponse([self._described(followed) for followed in self._hub.follower.views()])

    async def read(self, request: Request) -> Response:
        """The rows of a view: filtered, ordered, a page at a time; with Accept: text/event-stream its changes."""
        if asks_for_events(request.headers.get("accept")):
            return await self._events(request)
        followed = await self._at(request)
        query, form = _query(request, followed), accepted(request.headers.get("accept"), request.query_params.get("format"))
        if (unchanged := _unchanged(request, followed)) is not None:
            return unchanged
        page = await asyncio.to_thread(_page, followed, query, form)
        headers = {"ETag": _tag(followed, page.epoch), "X-Epoch": str(page.epoch), **_VARY}
        if page.following is not None:
            headers["X-Next-Cursor"] = page.following
        if form.media_type != JSON:
            return Response(page.body, headers=headers, media_type=form.media_type)
        tail = f',"epoch":{page.epoch},"next":{json.dumps(page.following)}}}'
        return Response(b'{"rows":' + page.body + tail.encode(), headers=headers, media_type=JSON)

    async def find(self, request: Request) -> Response:
        """The row of a key, whose columns follow each other in the path; with fewer of them, all rows with that prefix."""
        followed = await self._at(request)
        parts = _parts(request, followed)
        key = followed.view.key
        kinds = [followed.view.columns.field(name).type for name in key]
        values = tuple(value_of(text, kind, name) for name, kind, text in zip(key, kinds, parts, strict=False))
        form = accepted(request.headers.get("accept"), request.query_params.get("format"))
        if (unchanged := _unchanged(request, followed)) is not None:
            return unchanged
        if len(parts) == len(key):
            answer = await self._key_reads.find(followed.table, values)
            if not answer.found:
                raise Problem(404, f"view {followed.view.name!r} has no row with the key {', '.join(parts)}", epoch=answer.epoch)
            headers = {"ETag": _tag(followed, answer.epoch), "X-Epoch": str(answer.epoch), **_VARY}
            return Response(answer.body(form), headers=headers, media_type=form.media_type)
        epoch, body = await asyncio.to_thread(_beginning_with, followed, values, form)
        headers = {"ETag": _tag(followed, epoch), "X-Epoch": str(epoch), **_VARY}
        return Response(body, headers=headers, media_type=form.media_type)

    async def subscribe(self, socket: WebSocket) -> None:
        """A view's snapshot and changes as messages of JSON."""
        hub = self._hub
        try:
            followed = await hub.opened(socket.path_params["name"])
            query, place = _query(socket, followed), socket.query_params.get("since")
            check_place(place)
            _admit(hub)
        except Problem as problem:
            await socket.accept()
            await socket.close(_CLOSED.get(problem.status, 4400), problem.fact[:100])
            return
        await socket.accept()
        hub.subscribers += 1
        listening = asyncio.ensure_future(_listen(socket))
        try:
            async for message in self._subscriptions.messages(followed.view.name, query, place):
                async with asyncio.timeout(hub.limits.stalled):
                    await socket.send_text(message.text)
                if listening.done():
                    return
            await socket.close(1001, "the server stops")
        except TimeoutError:
            await _close(socket, _STALLED, "it took nothing for too long")
        except Problem as problem:
            await _close(socket, _CLOSED.get(problem.status, 4400), problem.fact)
        except WebSocketDisconnect:
            return
        finally:
            hub.subscribers -= 1
            listening.cancel()

    async def _events(self, request: Request) -> Response:
        hub = self._hub
        followed = await hub.opened(request.path_params["name"])
        query = _query(request, followed)
        place = request.headers.get("last-event-id") or request.query_params.get("since")
        check_place(place)
        if request.method == "HEAD":
            return Response(headers={"Cache-Control": "no-store"}, media_type=EVENTS)
        _admit(hub)
        return StreamingResponse(self._stream(followed.view.name, query, place), media_type=EVENTS, headers={"Cache-Control": "no-store"})

    async def _stream(self, name: str, query: Query, place: str | None) -> AsyncIterator[str]:
        self._hub.subscribers += 1
        try:
            async for message in self._subscriptions.messages(name, query, place):
                yield f"id: {message.place}\nevent: {message.event}\ndata: {message.body}\n\n"
        except Problem as problem:
            yield f"event: error\ndata: {json.dumps({'detail': problem.fact})}\n\n"
        finally:
            self._hub.subscribers -= 1

    async def _at(self, request: Request) -> Followed:
        """The view of a request, at the requested epoch."""
        name, epoch = request.path_params["name"], request.query_params.get("epoch")
        if epoch is None:
            return self._hub.view(name)
        return await self._hub.reached(name, number(epoch, "epoch"), _seconds(request.query_params.get("wait")))

    def _described(self, followed: Followed) -> dict[str, Any]:
        view, table = followed.view, followed.table
        return {
            "name": view.name, "job": view.app, "columns": ddl(view.columns), "key": list(view.key),
            "rows": table.rows if followed.ready else None, "epoch": table.epoch, "ready": followed.ready,
        }  # fmt: skip


@dataclass(frozen=True)
class _RowsPage:
    """A page of a view as of an epoch, and the cursor of the following one."""

    epoch: int
    body: bytes
    following: str | None


def _page(followed: Followed, query: Query, form: ResponseFormat) -> _RowsPage:
    """The page of a query; in a thread, as it may build an index over all rows."""
    snapshot = followed.table.snapshot()
    values = {name: value for name, value in query.equal().items() if name in followed.view.key}
    rows = snapshot.where_equal(_frame(values, followed)) if values else snapshot.lazy()
    frame, more = page_of(rows, query)
    return _RowsPage(snapshot.epoch, form.rows(frame), cursor_of(frame, query) if more else None)


def _beginning_with(followed: Followed, values: Key, form: ResponseFormat) -> tuple[int, bytes]:
    """The epoch, and all rows whose key begins with these values."""
    snapshot, frame = followed.table.snapshot(), key_frame([values], followed.view)
    keep = pl.all_horizontal([pl.col(name).eq_missing(pl.lit(frame.get_column(name)).first()) for name in frame.columns])
    rest = followed.view.key[len(values) :]
    rows = snapshot.where_equal(frame).filter(keep).sort(rest).head(_MOST_OF_PREFIX + 1).collect()
    if rows.height > _MOST_OF_PREFIX:
        raise Problem(
            413,
            f"more than {_MOST_OF_PREFIX:,} rows have a key that begins with these parts",
            hint="ask for pages: GET /api/v1/views/{name}?column=value&limit=…",
        )
    return snapshot.epoch, form.rows(rows)


def _seconds(text: str | None) -> float:
    """How long to wait for an epoch."""
    try:
        seconds = _WAIT if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        raise Problem(400, f"wait={text!r} is not a number of seconds")
    return min(max(seconds, 0.0), 120.0)


def _query(request: HTTPConnection, followed: Followed) -> Query:
    return query_of(request.query_params.multi_items(), followed.view.columns, followed.view.key)


def _parts(request: Request, followed: Followed) -> list[str]:
    """The parts of the key in the path; one may contain a slash, written %2F."""
    raw: str = request.scope["raw_path"].decode("ascii")
    whole = [unquote(part) for part in raw.split("/")]
    before, parts = whole[:5], whole[5:]
    # A slash within the names before the key would move its parts.
    if before != ["", "api", "v1", "views", request.path_params["name"]]:
        parts = []
    if len(parts) > len(followed.view.key) or parts in ([], [""]):
        raise Problem(
            404, f"the key of view {followed.view.name!r} is {', '.join(followed.view.key)}", hint="one part of the path for each"
        )
    return parts


def _frame(values: dict[str, Any], followed: Followed) -> pl.DataFrame:
    columns = followed.view.columns
    return pl.DataFrame([pl.Series(name, [value], dtype(columns.field(name).type)) for name, value in values.items()])


def _tag(followed: Followed, epoch: int) -> str:
    return f'W/"{followed.table.topic_id[:12]}-{epoch}"'


def _unchanged(request: Request, followed: Followed) -> Response | None:
    tag = _tag(followed, followed.table.epoch)
    known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    return Response(status_code=304, headers={"ETag": tag, **_VARY}) if {"*", tag.removeprefix("W/")} & known else None


def _admit(hub: Hub) -> None:
    if hub.subscribers >= hub.limits.subscribers:
        raise Problem(429, f"{hub.subscribers:,} subscribers are served already", headers={"Retry-After": "5"})


async def _listen(socket: WebSocket) -> None:
    """Notice when a subscriber leaves; its messages have no meaning, be they text or bytes."""
    with suppress(RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            continue


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    try:
        await asyncio.wait_for(socket.close(code, reason[:100]), 1.0)
    except (TimeoutError, RuntimeError, WebSocketDisconnect):
        return
