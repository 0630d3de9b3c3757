"""Clients that send slowly, too much, or nothing: others are served meanwhile."""

from __future__ import annotations

import resource
import socket

import httpx2 as httpx
import pytest

from headrace.ops.servers.ports import free_ports
from headrace.serve.http.limits import ServerLimits
from headrace.serve.http.tokens import tokens_in
from headrace.serve.server import DIRECTORY
from headrace.testing.written import WrittenView
from tests.support.processes import PATIENCE, until
from tests.support.served_epochs import COLUMNS, KEY, killed, serve, started

CONNECTIONS = 10_000
# Idle connections are closed because there are too many, never because of a slow machine.
LIMITS = ServerLimits(connections=2_000, patience=600.0)


@pytest.fixture
def served(tmp_path):
    """A server in a process of its own: its port, and a client with a token."""
    view = WrittenView(tmp_path, COLUMNS, KEY)
    view.epoch([{"url": "/a", "views": 1}])
    port = free_ports(1)[0]
    process = started(serve, tmp_path, port, (), LIMITS)
    token = tokens_in(tmp_path / DIRECTORY).read
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as client:
        until(lambda: _answers(client))
        yield port, client
    killed(process)
    view.close()


def _answers(client):
    try:
        return client.get("/api/v1/views/totals/%2Fa").status_code == 200
    except httpx.TransportError:
        return False


def ask(client):
    """Ask on a new connection, as somebody else does: it is answered at the first attempt."""
    with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE) as other:
        assert other.get("/api/v1/views/totals/%2Fa").json() == {"url": "/a", "views": 1}


def still_open(connection):
    """Whether the server has left a connection open that has sent it nothing to answer."""
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


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
    held = []
    try:
        for number in range(many):
            held.append(opened(port, begun))
            if number % 1_000 == 999:
                ask(client)
        # Those that are closed are the oldest, and no more of them than must be.
        kept = [still_open(one) for one in held]
        assert kept == sorted(kept)
        assert LIMITS.connections - 12 <= sum(kept) <= LIMITS.connections
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    ask(client)


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
    ask(client)
    said.close()
    silent.close()
