"""A server of a home: its views in memory, the API in front of them, one security layer over all of it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from prometheus_client.core import Metric
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headrace.core.errors import ConnectorError, HeadraceError, SettingsError
from headrace.core.files.disk import PosixLock
from headrace.log import Log
from headrace.ops.alerts.channels import Channels
from headrace.ops.alerts.watch import jobs_in, watching
from headrace.serve.http.api import Api
from headrace.serve.http.connections import guarded
from headrace.serve.http.limits import ServerLimits
from headrace.serve.http.metrics import server_metrics
from headrace.serve.http.problems import Problem, problem_of
from headrace.serve.http.security import Dispatch, Security
from headrace.serve.http.tokens import Tokens, tokens_in
from headrace.serve.otlp import exported
from headrace.serve.pauses import collect_once, keep_what_is_there, let_go, short_turns
from headrace.serve.views.hub import Hub
from headrace.serve.views.sql_limits import SqlLimits

DIRECTORY = "serve"
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True)
class ServeSettings:
    """The address of a server, and its limits."""

    host: str = "127.0.0.1"
    port: int = 7070
    host_names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    """Listen on another address than loopback without TLS: the word must be said."""
    development: bool = False
    """Let the page crash jobs on purpose."""
    limits: ServerLimits = field(default_factory=ServerLimits)
    sql: SqlLimits = field(default_factory=SqlLimits)
    channels: Channels = field(default_factory=Channels)
    """The channels that alerts of the jobs are sent to."""
    otel: bool = False
    """Send the server's own metrics to a collector of OpenTelemetry; a run sends those of its job."""

    def __post_init__(self) -> None:
        if not self.loopback and self.certificate is None and not self.insecure:
            raise SettingsError(
                f"the address {self.host} can be reached from other machines, and there is no TLS",
                why="tokens and rows would travel in the clear",
                hint="give --certificate and --key, or say --insecure behind a proxy that has TLS",
            )

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{_in_url(self.host)}:{self.port}"

    def hosts(self) -> list[str]:
        """The names by which clients may address the server."""
        own = [_in_url(self.host), *(("127.0.0.1", "localhost", "[::1]") if self.loopback else ())]
        # A client names no port if it is that of the scheme, as it is at most proxies.
        usual = own if self.port == (80 if self.certificate is None else 443) else []
        bare = [name for name in self.host_names if not _PORT.search(name)]
        return [*usual, *self.host_names, *(f"{name}:{self.port}" for name in (*own, *bare))]


def _in_url(host: str) -> str:
    """A host as it is in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def free_port(first: int) -> int:
    """The first free port from `first` on."""
    for port in range(first, first + 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise ConnectorError(f"no port from {first} to {first + 99} is free", hint="choose one with --port")


class _HubServer(uvicorn.Server):
    """A server that says when it has started, as a port may be taken, and ends its streams before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, hub: Hub, announce: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._hub, self._announce = hub, announce
        self.refused: OSError | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(self._said_later)
        try:
            await super().startup(sockets)
        finally:
            logger.removeFilter(self._said_later)
        if self.started:
            self._announce()

    def _said_later(self, record: logging.LogRecord) -> bool:
        """Keep from the log why an address cannot be used: the error that follows has the reason."""
        if isinstance(record.msg, OSError):
            self.refused = record.msg
        return not isinstance(record.msg, OSError)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


class Server:
    """Serves one home until it is stopped."""

    def __init__(self, home: Path, settings: ServeSettings) -> None:
        self._home, self._settings = home, settings
        place = home / DIRECTORY
        self.tokens: Tokens = tokens_in(place)
        self._lock = PosixLock(place / f"lock-{settings.port}")
        # Two servers that share a port on different addresses do not share a cache.
        cached = self._lock.acquire(wait=False)
        self._log = Log(home / "log")
        self.hub = Hub(self._log, home, place / f"cache-{settings.port}" if cached else None, settings.limits)
        self.api = Api(self.hub, settings.sql, development=settings.development)
        self._serves_only = False

    @property
    def url(self) -> str:
        return self._settings.url

    def application(self) -> Starlette:
        """The ASGI application, with everything in front of it."""
        security = Middleware(
            Security, rules=self.api.rules(), tokens=self.tokens, hosts=self._settings.hosts(), limits=self._settings.limits
        )
        return Starlette(
            routes=[Dispatch()], middleware=[security], lifespan=self._lifespan,
            exception_handlers={Problem: _told, HeadraceError: _told, Exception: _failed},
        )  # fmt: skip

    def run(self, announce: Callable[[], None] = lambda: None) -> None:
        """Serve until SIGINT or SIGTERM; `announce` is called as soon as clients are answered."""

        self._serves_only = True
        server = _HubServer(self._config(), self.hub, announce)
        try:
            with short_turns():
                server.run()
        except SystemExit as error:
            if server.started:
                raise
            raise self._unserved(server) from error

    @contextmanager
    def background(self) -> Iterator[None]:
        """Serve in a thread for as long as the block lasts."""
        server = _HubServer(self._config(), self.hub)
        thread = threading.Thread(target=server.run, name="headrace-server", daemon=True)
        thread.start()
        with short_turns():
            try:
                while not server.started:
                    if not thread.is_alive():
                        raise self._unserved(server)
                    time.sleep(0.01)
                yield
            finally:
                server.should_exit = True
                thread.join()

    def _unserved(self, server: _HubServer) -> ConnectorError:
        reason = f": {server.refused.strerror}" if server.refused is not None else ""
        return ConnectorError(f"{self.url} cannot be served{reason}", hint="is the port taken? choose another with --port")

    def _config(self) -> uvicorn.Config:
        settings = self._settings
        return uvicorn.Config(
            self.application(), host=settings.host, port=settings.port, log_level="warning", access_log=False, ws="websockets-sansio",
            ws_per_message_deflate=False, http=guarded(settings.limits), timeout_keep_alive=30, server_header=False,
            timeout_graceful_shutdown=3, ssl_certfile=settings.certificate, ssl_keyfile=settings.key,
        )  # fmt: skip

    def _metrics(self) -> Iterable[Metric]:
        return server_metrics(self.hub.follower.rows(), self.hub.subscribers)

    async def _settle(self) -> None:
        """Once every view is there, let collections of garbage look only at what comes later."""
        while not self.hub.follower.ready:
            await self.hub.pause(0.1)
        keep_what_is_there()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self.hub.start()
        tasks = [asyncio.create_task(self.api.jobs.follow())]
        if self._serves_only:
            collect_once()
            tasks.append(asyncio.create_task(self._settle()))
        try:
            with (
                watching(lambda: jobs_in(self._home), self._log, self._settings.channels),
                exported(self._metrics) if self._settings.otel else nullcontext(),
            ):
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.hub.stop()
            self.api.queries.close()
            self._log.close()
            self._lock.release()
            if self._serves_only:
                let_go()


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem | HeadraceError)
    return (error if isinstance(error, Problem) else problem_of(error)).response()


async def _failed(request: Request, error: Exception) -> Response:
    """An unexpected error; the log of the server has the rest."""
    return Problem(500, "something went wrong in the server", hint="its log has the reason").response()
