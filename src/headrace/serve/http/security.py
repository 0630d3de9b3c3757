"""The one layer in front of every route and socket: name, origin, rate, token, role, content type, size.

It denies what it does not know.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.serve.http.limits import Rates, ServerLimits
from headrace.serve.http.problems import Problem
from headrace.serve.http.tokens import Role, Tokens

COOKIE = "headrace_token"
# The method of a path that is a socket.
WEBSOCKET = "WEBSOCKET"
_JSON = ("application/json", "application/x-ndjson", "application/cloudevents+json", "application/cloudevents-batch+json")
_HEADERS = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
# The code with which a WebSocket is closed before it is accepted: policy violation.
_REFUSED = 1008
# Nothing more is read from a client that sent too much or too slowly.
_CLOSE = {"Connection": "close"}


@dataclass(frozen=True)
class Rule:
    """The access rule of a path: for each method the role, and the application that answers. A path or method without a rule is denied."""

    path: str
    roles: Mapping[str, Role]
    applications: Mapping[str, ASGIApp]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return compile_path(self.path)[0]


class Rules:
    """The rules of all paths, found by what a path begins with: most patterns need not be tried."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._begun: dict[str, list[Rule]] = {}
        for rule in rules:
            self._begun.setdefault(rule.path.partition("{")[0], []).append(rule)

    def matching(self, path: str) -> list[tuple[Rule, re.Match[str]]]:
        """The rules of a path, and what they find in it."""
        near = (rule for begin, rules in self._begun.items() if path.startswith(begin) for rule in rules)
        return [(rule, match) for rule in near if (match := rule.pattern.fullmatch(path)) is not None]


class Security:
    """Checks each request before a handler sees it."""

    def __init__(self, app: ASGIApp, *, rules: Iterable[Rule], tokens: Tokens, hosts: Iterable[str], limits: ServerLimits) -> None:
        self._app = app
        self._rules = Rules(rules)
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._limits = limits
        self._rates = Rates(limits.rate, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._judge(scope)
        except Problem as problem:
            await self._refuse(problem, scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), _with_headers(send))

    def _judge(self, scope: Scope) -> None:
        """Refuse a request, or note the role of its token, the application that answers it, and the variables in its path."""
        headers = dict[bytes, bytes]()
        for name, value in scope["headers"]:
            headers.setdefault(name, value)
        host = ", ".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"host").lower()
        if host not in self._hosts:
            raise Problem(421, f"this server is not called {host!r}", hint="use the address it printed, or name it with --host-name")
        self._check_origin(headers.get(b"origin"), host, scope)
        client = scope.get("client")
        if not self._rates.allows(client[0] if client else ""):
            raise Problem(429, "too many requests", headers={"Retry-After": "1"})
        needed = self._found(scope)
        role = self._tokens.role_of(_token(scope, headers))
        if needed > Role.NONE and role == Role.NONE:
            raise Problem(401, "this needs a token", hint="Authorization: Bearer …", headers={"WWW-Authenticate": "Bearer"})
        if role < needed:
            raise Problem(403, f"this needs the role {needed.name.lower()}, the token has {role.name.lower()}")
        self._check_content(scope, headers)
        scope["role"] = role

    def _found(self, scope: Scope) -> Role:
        """The role that a request needs."""
        method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        method = "GET" if method == "HEAD" else method
        known = self._rules.matching(scope["path"])
        if not known:
            raise Problem(404, f"there is nothing at {scope['path']!r}")
        for rule, match in known:
            if method in rule.roles:
                scope["application"], scope["path_params"] = rule.applications[method], match.groupdict()
                return rule.roles[method]
        allowed = ", ".join(sorted({known_method for rule, _ in known for known_method in rule.roles}))
        raise Problem(405, f"{method} is not known here", headers={"Allow": allowed})

    def _check_origin(self, given: bytes | None, host: str, scope: Scope) -> None:
        if given is None:
            return
        origin = given.decode("latin-1")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin.lower() != f"{scheme}://{host}":
            raise Problem(403, f"requests from {origin!r} are not taken")

    def _check_content(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return
        length = headers.get(b"content-length", b"0").decode("latin-1")
        if not length.isdecimal():
            raise Problem(400, f"content-length {length!r} is not a number")
        if int(length) > self._limits.body:
            raise Problem(413, f"the body has {int(length):,} bytes, at most {self._limits.body:,} are taken")
        kind = headers.get(b"content-type", b"").decode("latin-1").split(";")[0].strip().lower()
        if kind not in _JSON:
            raise Problem(415, f"content type {kind!r} is not accepted", hint=f"one of {', '.join(_JSON)}")

    def _bounded(self, receive: Receive) -> Receive:
        """The body for a handler: not too large, and received in time."""
        taken, whole, began_at = 0, False, time.monotonic()

        async def bounded() -> Message:
            nonlocal taken, whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), began_at + self._limits.patience - time.monotonic())
            except TimeoutError:
                raise Problem(408, f"the body did not come in {self._limits.patience:g} seconds", headers=_CLOSE) from None
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if taken > self._limits.body:
                    raise Problem(413, f"the body has more than {self._limits.body:,} bytes", headers=_CLOSE)
            return message

        return bounded

    async def _refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _REFUSED, "reason": problem.fact[:100]})
            return
        await problem.response()(scope, receive, _with_headers(send))


class Dispatch(BaseRoute):
    """The one route of the server: the application that the security layer found. Paths are matched once, and never in two ways."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return Match.FULL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        application: ASGIApp = scope["application"]
        await application(scope, receive, send)


def _token(scope: Scope, headers: Mapping[bytes, bytes]) -> str | None:
    """The token of a request: in a header, in the query string where a header cannot be given, or in the page's cookie."""
    kind, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
    if given:
        return str(given[-1])
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return None
    found = cookies.get(COOKIE)
    return str(found.value) if found is not None else None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", ())}
            message["headers"] = [*message.get("headers", ()), *(header for header in _HEADERS if header[0] not in present)]
        await send(message)

    return sending
