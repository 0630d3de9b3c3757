"""Lookups that ask a service over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.testing.driver import TestDriver


class Customers(ThreadingHTTPServer):
    """Answers a request with what `replies` has next, and remembers the keys and the headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/customers?all=1"
        self.replies: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, str | None, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = self.server
        assert isinstance(service, Customers)
        keys = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append((self.path, self.headers["Authorization"], keys))
        status, said = service.replies.pop(0)
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


@pytest.fixture
def customers() -> Iterator[Customers]:
    with Customers() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        service.shutdown()
        thread.join()


def driver_of(customers: Customers, **options: Any) -> TestDriver:
    app = Declaration("orders")
    orders = app.stream("orders", "n int, user string", key="n")
    service = hr.http(customers.url, headers={"Authorization": "Bearer s3same"})
    named = orders.lookup(service, on={"user": "id"}, returns="name string", backoff="1 us", **options)
    app.sink(named, hr.log("named"), name="named")
    return TestDriver(app, shards=1)


def test_a_service_is_asked_for_keys_and_answers_with_rows(customers: Customers) -> None:
    customers.replies = [(503, "busy"), (200, [{"id": "ada", "name": "Ada"}])]
    driver = driver_of(customers)
    driver.send("orders", [{"n": 1, "user": "ada"}, {"n": 2, "user": 'é"x'}])
    assert driver.rows("named") == [{"n": 1, "user": "ada", "name": "Ada"}]
    assert customers.asked == [("/customers?all=1", "Bearer s3same", [{"id": "ada"}, {"id": 'é"x'}])] * 2


@pytest.mark.parametrize(("reply", "said"), [
    ((404, "gone"), 'answered 404: "gone"'), ((200, {"id": "ada"}), "answered no array of rows"), ((200, ["ada"]), "a row is a dictionary"),
])  # fmt: skip
def test_any_other_answer_is_the_reason_of_dead_letters(customers: Customers, reply: tuple[int, Any], said: str) -> None:
    customers.replies = [reply]
    driver = driver_of(customers, retries=0)
    driver.send("orders", [{"n": 1, "user": "ada"}])
    (letter,) = driver.dead_letters("orders")
    assert said in letter["reason"]
    assert "s3same" not in letter["reason"]
    assert driver.rows("named") == []
