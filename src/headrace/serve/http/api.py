"""Every operation of the HTTP API in one list: path, method, role, handler, parameters and result.

The rules of the security layer, by which requests find their handlers, and the OpenAPI document are derived from it, so that none of them
can miss an operation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import request_response, websocket_session
from starlette.types import ASGIApp

from headrace.serve.http.bodies import object_of
from headrace.serve.http.job_routes import JobRoutes
from headrace.serve.http.page_routes import PageRoutes
from headrace.serve.http.problems import Problem
from headrace.serve.http.security import WEBSOCKET, Rule
from headrace.serve.http.tokens import Role
from headrace.serve.http.topic_routes import TopicRoutes
from headrace.serve.http.view_routes import ViewRoutes
from headrace.serve.views.formats import JSON, accepted
from headrace.serve.views.hub import Hub
from headrace.serve.views.sql_limits import SqlLimits
from headrace.serve.views.sql_processes import SqlProcesses

Handler = Callable[[Request], Awaitable[Response]]
_QUERIES = 2
_KNOWN = ("If-None-Match",)


@dataclass(frozen=True)
class Operation:
    """One operation for clients. `query`, `body` and `headers` name their descriptions in the document."""

    method: str
    path: str
    role: Role
    handler: Callable[..., Awaitable[Any]]
    query: tuple[str, ...] = ()
    body: str | None = None
    headers: tuple[str, ...] = ()

    @property
    def application(self) -> ASGIApp:
        return websocket_session(self.handler) if self.method == WEBSOCKET else request_response(self.handler)

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().splitlines()[0]


class Api:
    """The operations on one hub."""

    def __init__(self, hub: Hub, sql: SqlLimits, *, development: bool = False) -> None:
        self._hub = hub
        self.queries = SqlProcesses(sql)
        self._running = asyncio.Semaphore(_QUERIES)
        self.jobs = jobs = JobRoutes(hub, development=development)
        views, topics, pages = ViewRoutes(hub), TopicRoutes(hub), PageRoutes()
        page = ("filters", "order", "limit", "cursor", "epoch", "wait", "since", "format")
        self.operations: Sequence[Operation] = (
            Operation("GET", "/", Role.READ, pages.index),
            Operation("GET", "/page.js", Role.READ, pages.script),
            Operation("GET", "/page.css", Role.READ, pages.style),
            Operation("GET", "/healthz", Role.NONE, self.health),
            Operation("GET", "/readyz", Role.NONE, self.ready),
            Operation("GET", "/metrics", Role.READ, jobs.metrics),
            Operation("GET", "/openapi.json", Role.READ, self.openapi),
            Operation("GET", "/asyncapi.json", Role.READ, self.asyncapi),
            Operation("GET", "/api/v1/me", Role.READ, jobs.me),
            Operation("GET", "/api/v1/jobs", Role.READ, jobs.list),
            Operation("GET", "/api/v1/jobs/{name}", Role.READ, jobs.read),
            Operation("GET", "/api/v1/jobs/{name}/health", Role.READ, jobs.health),
            Operation("GET", "/api/v1/jobs/{name}/alerts", Role.READ, jobs.alerts),
            Operation("GET", "/api/v1/jobs/{name}/watermarks", Role.READ, jobs.watermarks),
            Operation("POST", "/api/v1/jobs/{name}/crash", Role.OPERATE, jobs.crash, (), "Crash"),
            Operation("GET", "/api/v1/views", Role.READ, views.list),
            Operation("GET", "/api/v1/views/{name}", Role.READ, views.read, page, None, (*_KNOWN, "Last-Event-ID")),
            Operation(WEBSOCKET, "/api/v1/views/{name}", Role.READ, views.subscribe, ("since",)),
            Operation("GET", "/api/v1/views/{name}/{key:path}", Role.READ, views.find, ("epoch", "wait", "format"), None, _KNOWN),
            Operation("POST", "/api/v1/sql", Role.READ, self.sql, ("format",), "SqlQuery"),
            Operation("GET", "/api/v1/topics", Role.READ, topics.list),
            Operation("GET", "/api/v1/topics/{name}", Role.READ, topics.describe),
            Operation("POST", "/api/v1/topics/{name}", Role.PRODUCE, topics.produce, (), "Records", ("Idempotency-Key",)),
            Operation("GET", "/api/v1/topics/{name}/records", Role.READ, topics.records, ("partition", "offset", "time", "key", "limit")),
            Operation("GET", "/api/v1/topics/{name}/arrivals", Role.READ, topics.arrivals, ("since", "time", "window")),
            Operation("GET", "/api/v1/topics/{name}/panes", Role.READ, topics.panes, ("since",)),
            Operation("POST", "/api/v1/topics/{name}/redrive", Role.OPERATE, topics.redrive, (), "Letters"),
            Operation("GET", "/api/v1/groups", Role.READ, topics.groups),
            Operation("POST", "/api/v1/groups/{name}/seek", Role.OPERATE, topics.seek, (), "Seek"),
        )

    def rules(self) -> list[Rule]:
        """The operations by path, as the security layer finds them."""
        paths = dict[str, list[Operation]]()
        for operation in self.operations:
            paths.setdefault(operation.path, []).append(operation)
        return [
            Rule(path, {one.method: one.role for one in found}, {one.method: one.application for one in found})
            for path, found in paths.items()
        ]

    async def health(self, request: Request) -> Response:
        """Whether the server runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether every view has been read up to its job's last epoch."""
        if not self._hub.follower.ready:
            raise Problem(503, "some views are still being read", headers={"Retry-After": "1"})
        return JSONResponse({"status": "ready"})

    async def sql(self, request: Request) -> Response:
        """The rows of a SELECT over views."""
        asked = object_of(await request.body(), '{"query": "select …"}')
        if not isinstance(asked.get("query"), str):
            raise Problem(400, "the body has no query", hint='{"query": "select …"}')
        form = accepted(request.headers.get("accept"), request.query_params.get("format"))
        async with self._running:
            result = await asyncio.to_thread(self.queries.run, asked["query"], self._hub.follower.snapshot)
        frame = pl.from_arrow(result.table)
        assert isinstance(frame, pl.DataFrame)
        rows = await asyncio.to_thread(form.rows, frame)
        if form.media_type != JSON:
            return Response(rows, headers={"X-Complete": str(result.complete).lower()}, media_type=form.media_type)
        tail = f',"complete":{json.dumps(result.complete)},"epochs":{json.dumps(dict(result.epochs))}}}'
        return Response(b'{"rows":' + rows + tail.encode(), media_type=JSON)

    async def openapi(self, request: Request) -> Response:
        """This document."""
        from headrace.serve.http.documents import openapi

        return JSONResponse(openapi(self.operations))

    async def asyncapi(self, request: Request) -> Response:
        """The messages of subscriptions to views."""
        from headrace.serve.http.documents import asyncapi

        return JSONResponse(asyncapi(self._hub))
