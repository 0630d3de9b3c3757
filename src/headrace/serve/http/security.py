"""The one layer in front of every route and socket: name, origin, rate, token, role, content type, size.

It denies what it does not know.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.serve.http.limits import Rates, ServerLimits
from headrace.serve.http.problems import Problem
from headrace.serve.http.tokens import Role, Tokens

COOKIE = "headrace_token"
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
    """The access rule of a path: the role for each method. A path or method without a rule is denied."""

    pattern: re.Pattern[str]
    roles: Mapping[str, Role]


class Security:
    """Checks each request before a handler sees it."""

    def __init__(self, app: ASGIApp, *, rules: Iterable[Rule], tokens: Tokens, hosts: Iterable[str], limits: ServerLimits) -> None:
        self._app = app
        self._rules = list(rules)
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._limits = limits
        self._rates = Rates(limits.rate, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            scope["role"] = self._judge(scope)
        except Problem as problem:
            await self._refuse(problem, scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), _with_headers(send))

    def _judge(self, scope: Scope) -> Role:
        headers = Headers(scope=scope)
        host = ", ".join(headers.getlist("host")).lower()
        if host not in self._hosts:
            raise Problem(421, f"this server is not called {host!r}", hint="use the address it printed, or name it with --host-name")
        self._check_origin(headers.get("origin"), host, scope)
        client = scope.get("client")
        if not self._rates.allows(client[0] if client else ""):
            raise Problem(429, "too many requests", headers={"Retry-After": "1"})
        needed = self._needed(scope)
        role = self._tokens.role_of(_token(scope, headers))
        if needed > Role.NONE and role == Role.NONE:
            raise Problem(401, "this needs a token", hint="Authorization: Bearer …", headers={"WWW-Authenticate": "Bearer"})
        if role < needed:
            raise Problem(403, f"this needs the role {needed.name.lower()}, the token has {role.name.lower()}")
        self._check_content(scope, headers)
        return role

    def _needed(self, scope: Scope) -> Role:
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        method = "GET" if method == "HEAD" else method
        known = [rule for rule in self._rules if rule.pattern.fullmatch(scope["path"])]
        if not known:
            raise Problem(404, f"there is nothing at {scope['path']!r}")
        for rule in known:
            if method in rule.roles:
                return rule.roles[method]
        raise Problem(405, f"{method} is not known here", headers={"Allow": ", ".join(sorted({m for rule in known for m in rule.roles}))})

    def _check_origin(self, origin: str | None, host: str, scope: Scope) -> None:
        if origin is None:
            return
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin.lower() != f"{scheme}://{host}":
            raise Problem(403, f"requests from {origin!r} are not taken")

    def _check_content(self, scope: Scope, headers: Headers) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise Problem(400, f"content-length {length!r} is not a number")
        if int(length) > self._limits.body:
            raise Problem(413, f"the body has {int(length):,} bytes, at most {self._limits.body:,} are taken")
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
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


def _token(scope: Scope, headers: Headers) -> str | None:
    """The token of a request: in a header, in the query string where a header cannot be given, or in the page's cookie."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return str(value).strip()
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
    if given:
        return str(given[-1])
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get("cookie", ""))
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
