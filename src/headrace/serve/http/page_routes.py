"""The page: one HTML file, one script, one style sheet, all from the package."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from headrace.serve.http.problems import Problem
from headrace.serve.http.security import COOKIE

_KINDS = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
# Charts set the size of their parts by style attributes.
_OWN = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
_POLICY = f"{_OWN}; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class PageRoutes:
    """Handlers of the page."""

    async def index(self, request: Request) -> Response:
        """The page. A token in the address becomes a cookie, so that it is in no link and no log."""
        token = request.query_params.get("token")
        if token is not None:
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https", max_age=30 * 86_400)
            return answer
        return _file("index.html")

    async def script(self, request: Request) -> Response:
        """The script of the page."""
        return _file("page.js")

    async def style(self, request: Request) -> Response:
        """The style sheet of the page."""
        return _file("page.css")


def _file(name: str) -> Response:
    found = files("headrace.serve") / "page" / name
    if not found.is_file():
        raise Problem(404, "the page is not built", hint="make page")
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
    return Response(found.read_bytes(), media_type=_KINDS[name], headers=headers)
