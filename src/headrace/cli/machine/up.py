"""`headrace up` and `headrace down`: private servers for development."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.places import Home

Server = Annotated[str | None, typer.Argument(metavar="SERVER", help="kafka, opensearch, postgres or redis.")]


def up(server: Server = None, home: Home = None, as_json: render.Json = False) -> None:
    """Start a server on this machine, for development; without a name, show the running ones.

    Its data and its address stay the same until they are removed; it runs until `headrace down`.
    """
    from headrace.core.settings import load_settings
    from headrace.ops import development

    place = load_settings(home=home).home
    found = [development.up(server, place)] if server else list(development.running(place).values())
    rows = ({"server": one.server, "address": one.address, "pid": one.pid} for one in found)
    render.table(rows, as_json=as_json, empty="no server runs; start one: headrace up kafka")


def down(server: Server = None, home: Home = None, as_json: render.Json = False) -> None:
    """Stop a server that `headrace up` started, or all of them; their data stays."""
    from headrace.core.settings import load_settings
    from headrace.ops import development

    place = load_settings(home=home).home
    stopped = [development.down(name, place) for name in ([server] if server else list(development.running(place)))]
    render.table(({"server": one.server, "pid": one.pid} for one in stopped if one), as_json=as_json, empty="nothing was running")
