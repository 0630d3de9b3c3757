"""The metrics of one job on a port of their own, for a run without a server: GET /metrics on loopback, with the read token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headrace.core.errors import ConnectorError
from headrace.serve.http.metrics import MEDIA_TYPE
from headrace.serve.http.tokens import Role, Tokens

_PATIENCE = 10


@contextmanager
def metrics_served(port: int, tokens: Tokens, page: Callable[[], bytes]) -> Iterator[str]:
    """Serve the page for as long as the block lasts; gives its address."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(port, tokens, page))
    except OSError as error:
        raise ConnectorError(f"port {port} cannot be listened on: {error}", hint="choose another with --metrics") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="headrace-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(port: int, tokens: Tokens, page: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            kind, _, token = self.headers.get("Authorization", "").partition(" ")
            if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}") or self.headers.get("Origin"):
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            elif kind.lower() != "bearer" or tokens.role_of(token.strip()) < Role.READ:
                self.send_error(HTTPStatus.UNAUTHORIZED)
            elif self.path != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                body = page()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", MEDIA_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *said: Any) -> None:
            """A scrape every few seconds is not logged."""

    return Handler
