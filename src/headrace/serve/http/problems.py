"""Errors of the HTTP API in the form of RFC 9457: a type, a title, a status, and what to do."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from headrace.core.errors import HeadraceError

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "the request is not understood",
    401: "a token is needed",
    403: "the token does not allow this",
    404: "there is no such thing",
    405: "the method is not allowed here",
    406: "no such format",
    408: "it took too long",
    409: "it conflicts with what is there",
    413: "the request is too large",
    415: "the content type is not taken",
    421: "the server is not called that",
    422: "a record does not fit",
    429: "too many requests",
    500: "the server failed",
    503: "not ready yet",
}


class Problem(Exception):
    """An answer that is an error: `fact` says what, `hint` what to do; `extra` are further members."""

    def __init__(self, status: int, fact: str, *, hint: str | None = None, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(fact)
        self.status, self.fact, self.hint, self.headers, self.extra = status, fact, hint, headers, extra

    def response(self) -> Response:
        title = TITLES.get(self.status, "error")
        code = title.replace(" ", "-")
        body: dict[str, Any] = {"type": f"about:blank#{code}", "title": title, "status": self.status, "detail": self.fact}
        if self.hint:
            body["hint"] = self.hint
        return JSONResponse({**body, **self.extra}, self.status, self.headers, MEDIA_TYPE)


def problem_of(error: HeadraceError, status: int = 400) -> Problem:
    """One of our errors as an answer, without its place in the server's code."""
    problem = Problem(status, error.fact, hint=error.hint)
    if error.why:
        problem.extra["why"] = error.why
    return problem
