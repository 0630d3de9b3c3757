"""`headrace serve`: views, topics and SQL over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import render
from headrace.cli.places import Home


def serve(
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="The port to listen on.")] = 7070,
    host: Annotated[str, typer.Option("--host", help="The address to listen on; by default only this machine can reach it.")] = "127.0.0.1",
    host_name: Annotated[list[str] | None, typer.Option("--host-name", help="Another name that clients may call it by.")] = None,
    certificate: Annotated[Path | None, typer.Option("--certificate", exists=True, help="A TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option("--key", exists=True, help="The key of the certificate (PEM).")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond this machine without TLS.")] = False,
    operate: Annotated[bool, typer.Option("--operate", help="Print the address with the token that may do everything.")] = False,
    development: Annotated[bool, typer.Option("--development", help="Let the page crash jobs on purpose.")] = False,
    home: Home = None,
) -> None:
    """Serve the views of a home over HTTP: read, query and subscribe. Ctrl-C or SIGTERM stops it.

    Prints the address of the page with the token that may read, or with --operate everything. Tokens are in serve/tokens.json of the home.
    """
    from headrace.core.settings import follow_log_level, load_settings
    from headrace.ops.alerts.channels import Channels
    from headrace.serve.server import Server, ServeSettings

    settings = load_settings(home=home)
    follow_log_level(settings)
    chosen = ServeSettings(
        host, port, tuple(host_name or ()), certificate, key, insecure, development, otel=settings.otel,
        channels=Channels(settings.alert_webhook, settings.alert_mail),
    )  # fmt: skip
    server = Server(settings.home, chosen)
    token = server.tokens.operate if operate else server.tokens.read
    server.run(lambda: render.note(f"serving {settings.home} at {server.url}/?token={token}"))
