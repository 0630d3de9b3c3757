"""A collector of OpenTelemetry on loopback: takes OTLP over HTTP, and remembers the metrics it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse


class Collector:
    """What was sent: each time the metrics by name, and the name of the service."""

    def __init__(self) -> None:
        self.url = ""
        self.sent: list[dict[str, Any]] = []
        self.services: set[str] = set()
        self.came = threading.Condition()

    def take(self, body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        with self.came:
            for resource in request.resource_metrics:
                self.services |= {label.value.string_value for label in resource.resource.attributes if label.key == "service.name"}
                self.sent.append({metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics})
            self.came.notify_all()

    def wait_for(self, times: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.sent) >= times, timeout=60)


def labels(point: Any) -> dict[str, str]:
    """The attributes of a point."""
    return {label.key: label.value.string_value for label in point.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector for as long as the block lasts."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/metrics"
            collector.take(body)
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *said: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
