"""Every route and socket that the server's own documents name, walked with what must be refused; the list cannot forget one."""

from dataclasses import asdict
from datetime import date
from decimal import Decimal
from itertools import islice

import pytest
import schemathesis
import websockets.sync.client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from websockets.exceptions import ConnectionClosed, InvalidStatus

import headrace as hr
from headrace.plan.side_streams import DEAD_LETTER
from headrace.serve.http.limits import ServerLimits
from headrace.serve.http.security import WEBSOCKET, Dispatch
from tests.support.examples import examples
from tests.support.http_attacks import BODIES, PATHS, QUERIES
from tests.support.processes import PATIENCE

ROLES = ("none", "read", "produce", "operate")
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}


@pytest.fixture
def client(totals, serving):
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    totals.log.create_topic("clicks", schema="url string, n int")
    totals.log.create_topic("clicks.dead", schema=DEAD_LETTER)
    with serving(limits=ServerLimits(rate=1e6, burst=1e6)) as opened:
        opened.get("/api/v1/views/totals", params={"epoch": 1}).raise_for_status()
        yield opened


def operations(client):
    """Method, path and role of everything in the OpenAPI document, with names that are there."""
    document = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            named = path.replace("{name}", "totals" if "/views" in path else "clicks").replace("{key}", "%2Fa")
            yield method.upper(), named, described["x-role"]


def sockets(client):
    return [channel["address"] for channel in client.get("/asyncapi.json").json()["channels"].values()]


def send(client, method, path, **headers):
    content = b"{}" if method == "POST" else None
    kind = {"Content-Type": "application/json"} if content else {}
    request = client.build_request(method, path, content=content, headers={**kind, **headers})
    return client.send(request)


def test_the_documents_name_every_route_and_socket(client):
    described = {path: set(methods) for path, methods in client.get("/openapi.json").json()["paths"].items()}
    # A request reaches a handler by these rules only.
    assert [type(route) for route in client.server.application().routes] == [Dispatch]
    for rule in client.server.api.rules():
        assert rule.roles.keys() == rule.applications.keys()
        assert {method.lower() for method in rule.applications if method != WEBSOCKET} <= described[rule.path.replace(":path}", "}")], rule
        if WEBSOCKET in rule.applications:
            assert sockets(client)
            assert all(rule.pattern.fullmatch(address) for address in sockets(client))


def test_the_document_is_valid_and_names_what_a_client_may_send(client):
    document = client.get("/openapi.json").json()
    schemathesis.openapi.from_dict(document).validate()
    operations = [described for methods in document["paths"].values() for described in methods.values()]
    assert len({described["operationId"] for described in operations}) == len(operations)
    posted, read = document["paths"]["/api/v1/topics/{name}"]["post"], document["paths"]["/api/v1/views/{name}"]["get"]
    kinds = {"application/json", "application/x-ndjson", "application/cloudevents+json", "application/cloudevents-batch+json"}
    assert set(posted["requestBody"]["content"]) == kinds
    assert "Idempotency-Key" in {parameter["name"] for parameter in posted["parameters"]}
    assert {"filters", "If-None-Match", "Last-Event-ID"} <= {parameter["name"] for parameter in read["parameters"]}


def test_messages_are_described_as_they_come(written, serving):
    view = written("id int, price decimal(10,2), day date, ok boolean, tags array<string>", ("id",))
    view.epoch([{"id": 1, "price": Decimal("1.50"), "day": date(2026, 1, 1), "ok": True, "tags": ["x"]}])
    with serving() as client:
        (message,) = islice(hr.connect(client.server.url, client.server.tokens.read).view("totals").messages(), 1)
        described = client.get("/asyncapi.json").json()["channels"]["totals"]["messages"]["snapshot"]["payload"]["properties"]
    assert set(described) == set(message)
    types = {"integer": int, "string": str, "boolean": bool, "array": list}
    for name, value in message["rows"][0].items():
        assert type(value) is types[described["rows"]["items"]["properties"][name]["type"][0]], name


def test_without_a_token_or_with_a_wrong_one_everything_but_the_probes_is_refused(client):
    walked = 0
    for method, path, role in operations(client):
        for token in ("", "Bearer", "Bearer wrong", "Basic d3Jvbmc6d3Jvbmc=", f"Bearer {client.server.tokens.read} "[:-2]):
            answer = send(client, method, path, Authorization=token)
            if (method, path) in OPEN:
                assert role == "none"
                assert answer.status_code == 200
            else:
                assert answer.status_code == 401, (method, path, token)
                assert answer.headers["content-type"] == "application/problem+json"
            walked += 1
    assert walked > 100


def test_every_role_below_the_one_that_is_needed_is_refused(client):
    refused = 0
    for method, path, needed in operations(client):
        for role in ROLES[1 : ROLES.index(needed)]:
            token = getattr(client.server.tokens, role)
            assert send(client, method, path, Authorization=f"Bearer {token}").status_code == 403, (method, path, role)
            refused += 1
    assert refused >= 5


ORIGINS = ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1", "http://localhost.evil.example", "file://"]
HOSTS = ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "localhost.evil.example", "127.0.0.1:80@evil.example"]


def test_another_origin_or_host_is_refused_everywhere_with_the_right_token(client):
    for method, path, _ in operations(client):
        for origin in ORIGINS:
            assert send(client, method, path, Origin=origin).status_code == 403, (method, path, origin)
        for host in HOSTS:
            assert send(client, method, path, Host=host).status_code == 421, (method, path, host)


KINDS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonx", "text/html"]


def test_what_changes_something_takes_json_and_nothing_that_a_form_can_send(client):
    posts = [path for method, path, _ in operations(client) if method == "POST"]
    assert len(posts) >= 4
    for path in posts:
        for kind in KINDS:
            assert send(client, "POST", path, **{"Content-Type": kind}).status_code == 415, (path, kind)


def test_sockets_refuse_what_routes_refuse(client):
    right = {"Authorization": f"Bearer {client.server.tokens.read}"}
    wrong = [{}, {"Authorization": "Bearer wrong"}, *({**right, "Origin": origin} for origin in ORIGINS)]
    wrong += [{**right, "Cookie": "headrace_token=x", "Authorization": "Bearer x"}, {**right, "Host": "evil.example"}]
    for address in sockets(client):
        for headers in wrong:
            with (
                pytest.raises((InvalidStatus, ConnectionClosed)),
                websockets.sync.client.connect(client.socket_url + address, additional_headers=headers, open_timeout=PATIENCE) as opened,
            ):
                opened.recv(timeout=PATIENCE)


def test_methods_that_are_not_declared_are_refused_everywhere(client):
    declared = {(method, path) for method, path, _ in operations(client)}
    for path in {path for _, path in declared}:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            if (method, path) not in declared:
                assert client.request(method, path).status_code == 405, (method, path)


def test_no_request_that_the_document_allows_fails_in_the_server(client):
    """Schemathesis draws requests from the document, right ones and wrong ones."""
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    drawn, failed = 0, []
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples(40), phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
            def draw(case):
                nonlocal drawn
                if "epoch" in (case.query or {}):
                    # Else it waits for an epoch that never comes.
                    case.query["wait"] = "0"
                try:
                    answer = case.call(base_url=client.server.url, headers=dict(client.headers), timeout=PATIENCE, allow_redirects=False)
                except UnicodeError:
                    return
                drawn += 1
                failed.extend([(case.method, case.formatted_path, case.query, case.body)] if answer.status_code >= 500 else [])

            try:
                draw()
            except Unsatisfiable:
                # The operation has nothing that could be wrong.
                continue
    assert not failed
    assert drawn > examples(200)


def test_no_body_makes_a_route_fail_in_the_server(client):
    failed = []
    for method, path, _ in operations(client):
        if method == "POST":
            for body in BODIES:
                answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
                failed += [(path, body[:60])] if answer.status_code >= 500 else []
    assert not failed


def test_no_query_makes_a_route_fail_in_the_server(client):
    failed = []
    for method, path, _ in operations(client):
        if method == "GET":
            for query in QUERIES:
                answer = client.get("/", extensions={"target": f"{path}?{query}".encode()})
                failed += [(path, query)] if answer.status_code >= 500 else []
    assert not failed


def test_path_tricks_reach_nothing(client):
    tokens, reached = asdict(client.server.tokens).values(), []
    for path in PATHS:
        # As the bytes of the request line: a client's own library would tidy them up.
        answer = client.get("/", extensions={"target": path.encode()})
        told = "root:" in answer.text or any(token in answer.text for token in tokens)
        reached += [(path[:80], answer.status_code)] if told or answer.status_code not in (400, 404, 405, 431) else []
    assert not reached
