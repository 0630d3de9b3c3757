"""Clients that send slowly, too much, or nothing: others are served meanwhile."""

from __future__ import annotations

import resource
import socket
import time

import httpx2 as httpx
import pytest

from headrace.ops.servers.ports import free_ports
from headrace.serve.http.tokens import tokens_in
from headrace.serve.server import DIRECTORY
from headrace.testing.written import WrittenView
from tests.support.processes import until
from tests.support.served_epochs import COLUMNS, KEY, killed, serve, started

CONNECTIONS = 10_000


@pytest.fixture
def served(tmp_path):
    """A server in a process of its own: its port, and a client with a token."""
    view = WrittenView(tmp_path, COLUMNS, KEY)
    view.epoch([{"url": "/a", "views": 1}])
    port = free_ports(1)[0]
    process = started(serve, tmp_path, port, ())
    token = tokens_in(tmp_path / DIRECTORY).read
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        until(lambda: _answers(client))
        yield port, client
    killed(process)
    view.close()


def _answers(client):
    try:
        return client.get("/api/v1/views/totals/%2Fa").status_code == 200
    except httpx.TransportError:
        return False


def ask(port, client):
    """A new connection, as one of somebody else; how long the answer took.

    A server that is full closes idle connections, and may take a new one for idle before its request has come: a client tries again.
    """
    began = time.monotonic()
    with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=30) as other:
        until(lambda: _answers(other))
        assert other.get("/api/v1/views/totals/%2Fa").json() == {"url": "/a", "views": 1}
    return time.monotonic() - began


def opened(port, begun):
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(begun)
    return one


@pytest.mark.parametrize(
    "begun", [b"", b"GET /api/v1/views HTTP/1.1\r\nHost: x\r\nX-Slow: a"], ids=["that say nothing", "with half of their headers"]
)
def test_ten_thousand_connections_keep_nobody_else_out(served, begun):
    port, client = served
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = min(CONNECTIONS, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held, took = [], []
    try:
        for number in range(many):
            held.append(opened(port, begun))
            if number % 1_000 == 999:
                took.append(ask(port, client))
        took += [ask(port, client) for _ in range(20)]
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert max(took) < 10
    assert client.get("/api/v1/views/totals/%2Fa").status_code == 200


def test_huge_bodies_are_cut_off_and_others_are_served(served):
    port, client = served
    head = b"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: %s\r\nContent-Type: application/json\r\n"
    head %= port, client.headers["authorization"].encode()
    said = opened(port, head + b"Content-Length: 99999999999\r\n\r\n")
    silent = opened(port, head + b"Transfer-Encoding: chunked\r\n\r\n")
    block = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    sent = 0
    try:
        while sent < 200:
            silent.sendall(block)
            sent += 1
    except OSError:
        pass  # the server has hung up
    assert sent < 100
    assert b" 413 " in said.recv(100)
    assert ask(port, client) < 10
    said.close()
    silent.close()
