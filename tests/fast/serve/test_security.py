"""Nothing is served to whom it is not meant: every operation is walked, so that a new one cannot be forgotten."""

import json
import re
import socket
import stat

import pytest
import websockets.sync.client
from websockets.exceptions import ConnectionClosed, InvalidStatus

from headrace.core.errors import SettingsError
from headrace.serve.http.limits import ServerLimits
from headrace.serve.http.tokens import Role
from headrace.serve.server import DIRECTORY, ServeSettings
from tests.support.processes import PATIENCE
from tests.support.sockets import received

LOWER = {Role.READ: None, Role.PRODUCE: "read", Role.OPERATE: "produce"}


def operations(client):
    """Every operation that needs a role, as (method, path, role), from the document that the server gives."""
    document = client.get("/openapi.json").json()
    return [
        (method.upper(), re.sub(r"\{\w+\}", "totals", path), Role[described["x-role"].upper()])
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]


def ask(client, method, path, **headers):
    body = b"{}" if method == "POST" else None
    content = {"Content-Type": "application/json"} if method == "POST" else {}
    return client.request(method, path, content=body, headers={**content, **headers})


def test_every_operation_is_refused_without_a_token_and_with_that_of_a_lesser_role(totals, serving):
    totals.epoch([])
    with serving() as client:
        tokens = client.server.tokens
        walked = operations(client)
        for method, path, role in walked:
            if role == Role.NONE:
                continue
            assert ask(client, method, path, Authorization="").status_code == 401, path
            assert ask(client, method, path, Authorization="Bearer wrong").status_code == 401, path
            lesser = LOWER[role]
            if lesser is not None:
                token = getattr(tokens, lesser)
                assert ask(client, method, path, Authorization=f"Bearer {token}").status_code == 403, path
    assert len(walked) >= 15
    assert {role for _, _, role in walked} == set(Role)


def test_every_operation_is_refused_under_another_name_and_from_another_origin(totals, serving):
    totals.epoch([])
    with serving() as client:
        for method, path, _ in operations(client):
            assert ask(client, method, path, Host="evil.example").status_code == 421, path
            assert ask(client, method, path, Origin="http://evil.example").status_code == 403, path
            assert ask(client, method, path, Origin="null").status_code == 403, path


def test_what_changes_something_takes_json_only(totals, serving):
    totals.epoch([])
    with serving() as client:
        for method, path, _ in operations(client):
            if method == "POST":
                for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
                    answer = client.request(method, path, content=b"{}", headers={"Content-Type": kind})
                    assert answer.status_code == 415, (path, kind)


def test_a_socket_is_refused_without_a_token_and_from_another_origin(totals, serving):
    totals.epoch([])
    with serving() as client:
        url = f"{client.socket_url}/api/v1/views/totals"
        right = {"Authorization": f"Bearer {client.server.tokens.read}"}
        for headers in ({}, {"Authorization": "Bearer wrong"}, {**right, "Origin": "http://evil.example"}):
            with (
                pytest.raises((InvalidStatus, ConnectionClosed)),
                websockets.sync.client.connect(url, additional_headers=headers, open_timeout=PATIENCE) as opened,
            ):
                opened.recv(timeout=PATIENCE)


def test_a_path_or_method_that_is_not_declared_is_denied(totals, serving):
    totals.epoch([])
    with serving() as client:
        for path in ("/index.html", "/api/v1", "/api/v1/views/../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd", "/docs"):
            assert client.get(path).status_code in (404, 405), path
        assert client.delete("/api/v1/views").status_code == 405
        assert client.put("/api/v1/topics/totals", json={}).status_code == 405


def test_tokens_are_random_and_only_their_user_can_read_them(home, totals, serving):
    with serving() as client:
        tokens = client.server.tokens
    file = home / DIRECTORY / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len({tokens.read, tokens.produce, tokens.operate}) == 3
    assert all(len(token) >= 32 for token in json.loads(file.read_text()).values())
    with serving() as client:
        assert client.server.tokens == tokens


def test_an_answer_carries_the_headers_that_keep_a_page_to_itself(totals, serving):
    with serving() as client:
        for path in ("/healthz", "/nothing"):
            headers = client.get(path).headers
            assert headers["content-security-policy"].startswith("default-src 'self'")
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"


def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(totals, serving):
    with serving(limits=ServerLimits(body=1_000)) as client:
        said = client.post("/api/v1/sql", content=b"x" * 2_000, headers={"Content-Type": "application/json"})
        silent = client.post("/api/v1/sql", content=iter([b"x" * 900] * 3), headers={"Content-Type": "application/json"})
    assert (said.status_code, silent.status_code) == (413, 413)


def test_an_address_that_asks_too_often_is_told_to_wait(totals, serving):
    with serving(limits=ServerLimits(rate=1, burst=5)) as client:
        answers = [client.get("/healthz").status_code for _ in range(8)]
    assert answers[:5] == [200] * 5
    assert 429 in answers[5:]


def test_another_address_than_loopback_needs_tls_or_the_word():
    with pytest.raises(SettingsError, match="no TLS"):
        ServeSettings(host="0.0.0.0")
    assert ServeSettings(host="0.0.0.0", insecure=True).insecure
    assert ServeSettings(host="::1").loopback


def test_an_error_of_the_server_tells_nothing_of_its_inside(totals, serving, monkeypatch):
    totals.epoch([])
    with serving() as client:
        monkeypatch.setattr(client.server.hub.follower, "views", lambda: 1 / 0)
        answer = client.get("/api/v1/views")
    assert answer.status_code == 500
    assert "division" not in answer.text
    assert "Traceback" not in answer.text


def test_headers_and_bodies_that_do_not_come_in_time_are_not_waited_for(totals, serving):
    totals.epoch([])
    with serving(limits=ServerLimits(patience=0.3)) as client:
        address, token = ("127.0.0.1", client.base_url.port), client.server.tokens.read
        head = f"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\nAuthorization: Bearer {token}\r\n"
        for begun, told in (("", b""), (head, b""), (f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{", b" 408 ")):
            with socket.create_connection(address, timeout=PATIENCE) as slow:
                slow.sendall(begun.encode())
                assert told in received(slow)


def test_beyond_the_most_connections_the_one_that_waits_longest_is_closed(totals, serving):
    totals.epoch([])
    with serving(limits=ServerLimits(connections=3)) as client:
        waiting = [socket.create_connection(("127.0.0.1", client.base_url.port), timeout=PATIENCE) for _ in range(3)]
        assert client.get("/healthz").status_code == 200
        assert received(waiting[0]) == b""
        waiting[2].sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{client.base_url.port}\r\nConnection: close\r\n\r\n".encode())
        assert b" 200 " in received(waiting[2])
        for one in waiting:
            one.close()


def test_a_name_that_clients_call_the_server_by_is_taken_with_its_port_and_as_a_proxy_sends_it(totals, serving):
    totals.epoch([])
    with serving(host_names=("views.example.org", "other.example.org:8443")) as client:
        port = client.base_url.port
        hosts = ["views.example.org", f"views.example.org:{port}", "other.example.org:8443", "other.example.org", "views.example.org:1"]
        assert [client.get("/healthz", headers={"Host": host}).status_code for host in hosts] == [200, 200, 200, 421, 421]


def test_the_port_of_the_scheme_may_be_left_out_and_an_address_of_ipv6_is_in_brackets():
    assert "localhost" in ServeSettings(port=80).hosts()
    assert "localhost" not in ServeSettings(port=443).hosts()
    settings = ServeSettings(host="::1", port=7070)
    assert "[::1]:7070" in settings.hosts()
    assert settings.url == "http://[::1]:7070"
