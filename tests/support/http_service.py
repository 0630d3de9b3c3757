"""A service that takes records as JSON by POST, each idempotency key once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class HttpService(ThreadingHTTPServer):
    """Takes everything; others say in `answer` what becomes of a record."""

    daemon_threads = True

    def __init__(self, path: str = "/") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}{path}"
        self.taken: dict[str, dict[str, Any]] = {}

    def answer(self, headers: Mapping[str, str], record: dict[str, Any]) -> int:
        """The status that a record is answered with."""
        self.taken.setdefault(headers["Idempotency-Key"], record)
        return 200


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one piece: two would wait for each other

    def do_POST(self) -> None:
        service = self.server
        assert isinstance(service, HttpService)
        status = service.answer(self.headers, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok" if status == 200 else b"no")

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


Kind = TypeVar("Kind", bound=HttpService)


@contextmanager
def served(service: Kind) -> Iterator[Kind]:
    """Let a service listen while the block runs."""
    with service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()
