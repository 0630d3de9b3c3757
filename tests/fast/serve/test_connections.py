"""Connections: requests as bytes that no well-behaved client sends."""

import select
import socket

import pytest

from headrace.serve.http.limits import ServerLimits
from tests.support.processes import PATIENCE
from tests.support.sockets import received

HUGE = b"a" * 400_000


@pytest.fixture
def asked(totals, serving):
    """Sends bytes to a server, and gives all that it answers until it closes the connection."""
    totals.epoch([{"url": "/", "user": "ada", "views": 1}])
    with serving() as client:
        port = client.base_url.port

        def ask(*parts):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
                try:
                    for part in parts:
                        connection.sendall(part.replace(b"HOST", f"127.0.0.1:{port}".encode()))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                return received(connection)

        yield ask


def test_requests_that_come_at_once_are_answered_one_after_the_other(asked):
    one = b"GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert asked(one * 20 + last).count(b"HTTP/1.1 200 ") == 21


def test_a_request_that_comes_in_many_parts_is_answered(asked):
    request = b"GET /healthz HTTP/1.1\r\nX: HOST\r\nHost: HOST\r\nConnection: close\r\n\r\n"
    first, second, third = request.partition(b"HOST")
    parts = [*(first[at : at + 1] for at in range(len(first))), second, third]
    assert asked(*parts).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "parts",
    [
        (b"GET /healthz?", *[HUGE] * 20),
        (b"GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: ", *[HUGE] * 20),
        (b"GET /healthz HTTP/1.1\r\nHost: HOST\r\n", *[b"X: y\r\n" * 50_000] * 20),
        (b"POST /api/v1/sql HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n", *[b"X: y\r\n" * 50_000] * 20),
    ],
    ids=["path", "header", "many headers", "trailers"],
)
def test_a_head_or_trailer_without_end_is_cut_off(asked, parts):
    answer = asked(*parts)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 "))


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: HOST\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
        (b"POST /api/v1/sql HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", b"400"),
        (b"POST /api/v1/sql HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (b"GET /healthz\xff HTTP/1.1\r\nHost: HOST\r\n\r\n", b"400"),
        (b"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
    ],
    ids=["second host", "first host", "no host", "absolute address", "two lengths", "length twice", "no ASCII", "tunnel", "TLS"],
)
def test_a_request_that_two_servers_may_read_in_two_ways_is_refused(asked, request_bytes, status):
    assert asked(request_bytes).startswith(b"HTTP/1.1 " + status + b" ")


@pytest.mark.parametrize("together", [True, False])
def test_a_connection_goes_on_after_an_upgrade_that_is_not_offered(asked, together):
    upgrade = b"POST /healthz HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"
    get = upgrade.replace(b"POST", b"GET").replace(b"Content-Length: 2\r\n\r\n{}", b"\r\n")
    last = b"GET /healthz HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"
    answers = asked(*([upgrade + get + last] if together else [upgrade, get, last]))
    assert (answers.count(b"HTTP/1.1 405 "), answers.count(b"HTTP/1.1 200 ")) == (1, 2)


def test_a_request_that_came_with_others_is_not_taken_for_a_silent_connection(totals, serving):
    """The second waits for an epoch for longer than a connection may be silent."""
    totals.epoch([{"url": "/", "user": "ada", "views": 1}])
    with serving(limits=ServerLimits(patience=0.3)) as client:
        head = f"Host: 127.0.0.1:{client.base_url.port}\r\nAuthorization: Bearer {client.server.tokens.read}\r\n"
        first = f"GET /healthz HTTP/1.1\r\n{head}\r\n"
        second = f"GET /api/v1/views/totals?epoch=99&wait=1 HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=PATIENCE) as connection:
            connection.sendall((first + second).encode())
            assert received(connection).count(b"HTTP/1.1 ") == 2


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_a_client_that_reads_nothing_of_its_answer_is_cut_off_and_one_that_reads_has_all_of_it(totals, serving, accept):
    rows = [{"url": f"/{number}", "user": "x" * 500_000, "views": number} for number in range(40)]
    totals.epoch(rows)
    with serving(limits=ServerLimits(stalled=0.05)) as client:
        client.get("/api/v1/views/totals?epoch=1&limit=1").raise_for_status()
        request = b"GET /api/v1/views/totals HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nAuthorization: Bearer %s\r\n\r\n"
        asked = request % (client.base_url.netloc, accept.encode(), client.server.tokens.read.encode())
        with socket.socket() as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            idle.connect(("127.0.0.1", client.base_url.port))
            idle.sendall(asked)
            ended = select.poll()
            # Only that the connection was cut off; to read what came would be to read.
            ended.register(idle, 0)
            assert ended.poll(PATIENCE * 1_000)
        with client.stream("GET", "/api/v1/views/totals", headers={"Accept": accept}) as answer:
            size = 0
            for part in answer.iter_raw():
                size += len(part)
                if size > 40 * 500_000:
                    break
        assert size > 40 * 500_000


def test_the_head_of_a_stream_of_changes_has_an_end(totals, serving):
    totals.epoch([])
    with serving() as client:
        answer = client.head("/api/v1/views/totals", headers={"Accept": "text/event-stream"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert client.server.hub.subscribers == 0
