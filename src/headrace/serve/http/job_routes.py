"""Jobs over HTTP: the description and the status of each, requested once or streamed as it changes."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from headrace.core.errors import HeadraceError, JobError
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import JobDescription
from headrace.ops.alerts.watch import told
from headrace.ops.crash import DRIVER, WORKER, crash
from headrace.ops.why.facts import facts_of
from headrace.ops.why.finding import Finding
from headrace.ops.why.rules import findings, watched
from headrace.serve.http.bodies import object_of
from headrace.serve.http.metrics import MEDIA_TYPE, exposition
from headrace.serve.http.problems import Problem, problem_of
from headrace.serve.http.tokens import Role
from headrace.serve.status import JobStatus
from headrace.serve.views.catalog import Catalog
from headrace.serve.views.formats import EVENTS, asks_for_events
from headrace.serve.views.hub import Hub

# A status is computed at most this often, however many clients ask for it.
_EVERY = 0.5
# Without clients the accounting is followed this often: the journal of quick epochs goes back some seconds.
_FOLLOWED = 3.0
_log = logging.getLogger(__name__)


class JobRoutes:
    """Handlers of /api/v1/jobs."""

    def __init__(self, hub: Hub, *, development: bool = False) -> None:
        self._hub, self._development = hub, development
        self._statuses: dict[str, JobStatus] = {}
        self._told: dict[str, tuple[float, dict[str, Any]]] = {}
        self._asking = asyncio.Lock()

    async def list(self, request: Request) -> Response:
        """Every job of the home: its steps, views and sinks, and its last committed epoch."""
        found = await asyncio.to_thread(lambda: list(Catalog(self._hub.home).jobs()))
        return JSONResponse([{**asdict(job), "epoch": self._hub.follower.progress(job.app).epoch} for job in found])

    async def read(self, request: Request) -> Response:
        """The status of a job; with Accept: text/event-stream again and again."""
        name = request.path_params["name"]
        await self._status(name)
        if asks_for_events(request.headers.get("accept")):
            return StreamingResponse(self._stream(name), media_type=EVENTS, headers={"Cache-Control": "no-store"})
        return JSONResponse(await self._status(name))

    async def health(self, request: Request) -> Response:
        """What is wrong with a job, since when, and the remedy: the findings of `headrace why`."""
        found = await asyncio.to_thread(self._findings, request.path_params["name"])
        told = [finding.to_json() for finding in found]
        return JSONResponse({"healthy": not any(finding.wrong for finding in found), "findings": told, "rules": watched()})

    async def crash(self, request: Request) -> Response:
        """Kill a job's driver, or one of its workers, with SIGKILL; only on a server that was started for development."""
        if not self._development:
            raise Problem(403, "this server was not started for development", hint="headrace serve --development")
        name, asked = request.path_params["name"], object_of(await request.body() or b"{}", '{"what": "driver"}')
        what = asked.get("what", DRIVER)
        if what not in (DRIVER, WORKER):
            raise Problem(400, f"what={what!r} cannot be killed", hint=f"{DRIVER} or {WORKER}")
        await asyncio.to_thread(self._described, name)
        try:
            killed = await asyncio.to_thread(crash, JobDirectory(self._hub.home, name), what)
        except JobError as error:
            raise problem_of(error, 409) from error
        return JSONResponse({"killed": what, "pid": killed})

    async def alerts(self, request: Request) -> Response:
        """The alerts of a job: which fire, which are about to, and the last events."""
        name = request.path_params["name"]
        found = await asyncio.to_thread(lambda: told(JobDirectory(self._hub.home, name), self._described(name)))
        return JSONResponse(found)

    async def watermarks(self, request: Request) -> Response:
        """Where the watermark of a job was in the last ten minutes: when, and the watermark, in milliseconds since 1970."""
        name = request.path_params["name"]
        await self._status(name)
        return JSONResponse(self._statuses[name].watermarks())

    async def metrics(self, request: Request) -> Response:
        """The facts of all jobs and views in Prometheus' format."""
        names = await asyncio.to_thread(lambda: [job.app for job in Catalog(self._hub.home).jobs()])
        told = [await self._status(name) for name in names]
        return Response(exposition(told, self._hub.follower.rows(), self._hub.subscribers), media_type=MEDIA_TYPE)

    async def me(self, request: Request) -> Response:
        """The role that the token proves, and whether jobs may be crashed."""
        role: Role = request.scope["role"]
        return JSONResponse({"role": role.name.lower(), "development": self._development})

    async def follow(self) -> None:
        """Look at every job now and then: what the journal drops within seconds is known when somebody opens the page."""
        while not self._hub.closing:
            try:
                for job in await asyncio.to_thread(lambda: list(Catalog(self._hub.home).jobs())):
                    async with self._asking:
                        await asyncio.to_thread(self._status_of(job.app).follow)
            except (HeadraceError, OSError) as error:
                # A job that is being removed; who asks for it is told.
                _log.info("the jobs could not be followed: %s", error)
            await self._hub.pause(_FOLLOWED)

    async def _stream(self, name: str) -> AsyncIterator[str]:
        while not self._hub.closing:
            try:
                told = await self._status(name)
            except Problem as problem:
                yield f"event: error\ndata: {json.dumps({'detail': problem.fact})}\n\n"
                return
            yield f"event: status\ndata: {json.dumps(told, separators=(',', ':'))}\n\n"
            await self._hub.pause(_EVERY)

    async def _status(self, name: str) -> dict[str, Any]:
        async with self._asking:
            made_at, told = self._told.get(name, (0.0, {}))
            if time.monotonic() - made_at >= _EVERY:
                told = await asyncio.to_thread(self._made, name)
                self._told[name] = (time.monotonic(), told)
            return told

    def _made(self, name: str) -> dict[str, Any]:
        description = self._described(name)
        return self._status_of(name).told(description)

    def _status_of(self, name: str) -> JobStatus:
        if name not in self._statuses:
            self._statuses[name] = JobStatus(self._hub.log, JobDirectory(self._hub.home, name))
        return self._statuses[name]

    def _findings(self, name: str) -> Sequence[Finding]:
        self._described(name)
        return findings(facts_of(JobDirectory(self._hub.home, name), self._hub.log, self._hub.log.clock.now()))

    def _described(self, name: str) -> JobDescription:
        for job in Catalog(self._hub.home).jobs():
            if job.app == name:
                return job
        raise Problem(404, f"there is no job {name!r}", hint="a job is there once it has run")
