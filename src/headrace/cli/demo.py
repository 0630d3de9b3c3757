"""`headrace demo`: Headrace at work, in one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from headrace.cli import render
from headrace.cli.places import Home

if TYPE_CHECKING:
    from headrace.cli.demos.figures import Figures

app = typer.Typer(help="Headrace at work: a live demo in this terminal.")


class Show(Protocol):
    """Shows figures, as often as they change."""

    def __call__(self, figures: Figures) -> None: ...


@app.callback()
def _demos() -> None:
    """Each demo is a command of its own."""


@app.command()
def pageviews(
    rate: Annotated[float, typer.Option("--rate", "-r", min=1, help="Page views a second.")] = 2000,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="End after this many seconds, with everything counted.")] = None,
    home: Home = None,
    picture: Annotated[Path | None, typer.Option("--picture", hidden=True, help="Write the last look to this SVG file.")] = None,
    as_json: render.Json = False,
) -> None:
    """Page views are written to the log, and a job counts them per URL and minute, live. Ctrl-C stops it; the next run continues."""
    from dataclasses import replace

    from headrace.cli.demos.pageviews import PageViews
    from headrace.core.settings import load_settings

    settings = load_settings(home=home)
    if home is None:
        settings = replace(settings, home=settings.home / "demo")
    figures = None
    with PageViews(settings, rate=rate) as demo, nullcontext() if render.for_programs(as_json) else _page(settings.home):
        with _shown(rate, as_json=as_json) as show:
            for figures in demo.looks(seconds=seconds):
                show(figures)
        render.note("stopping ...")
    if figures is not None:
        _summary(figures, settings.home, as_json=as_json)
        if picture is not None:
            _draw(figures, rate, picture)


@contextmanager
def _page(home: Path) -> Iterator[None]:
    """Serve the page next to the board, and open it where there is a browser."""
    import os
    import sys
    import webbrowser

    from headrace.serve.server import Server, ServeSettings, free_port

    server = Server(home, ServeSettings(port=free_port(7070), development=True))
    with server.background():
        address = f"{server.url}/?token={server.tokens.operate}"
        render.note(f"the page: {address}")
        if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(address)
        yield


@contextmanager
def _shown(rate: float, *, as_json: bool) -> Iterator[Show]:
    """A board that is updated in place on a terminal, a line each second for programs."""
    if render.for_programs(as_json):
        yield _Lines()
        return
    from rich.live import Live

    from headrace.cli.demos.board import board

    with Live(console=render.console(), auto_refresh=False) as live:
        yield lambda figures: live.update(board(figures, rate), refresh=True)


class _Lines:
    """Progress as NDJSON, once a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, figures: Figures) -> None:
        if figures.seconds >= self._next:
            self._next = figures.seconds + 1
            render.record(figures.row())


def _summary(figures: Figures, home: Path, *, as_json: bool) -> None:
    if render.for_programs(as_json):
        render.record({**figures.row(), "ended": True, "home": home})
        return
    render.note(
        f"{figures.written:,} page views written and {figures.counted:,} counted in {figures.seconds:.0f} s; "
        f"the counts: headrace tail views_so_far --home {home}"
    )


def _draw(figures: Figures, rate: float, file: Path) -> None:
    import io
    import re

    from rich.console import Console
    from rich.terminal_theme import MONOKAI

    from headrace.cli.demos.board import WIDTH, board

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(board(figures, rate))
    svg = console.export_svg(title="make demo", theme=MONOKAI)
    # Without the fonts that it would load from elsewhere: a picture in a document makes no requests.
    file.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")
