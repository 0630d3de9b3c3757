"""`headrace demo`: Headrace at work, in one command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headrace.cli import render
from headrace.cli.places import Home

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.cli.demos.live import DemoFigures, LiveDemo
    from headrace.core.settings import Settings

F = TypeVar("F", bound="DemoFigures")
app = typer.Typer(help="Headrace at work: a live demo in this terminal.")
Rate = Annotated[float, typer.Option("--rate", "-r", min=1, help="Records per second.")]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0, help="End after this many seconds, with everything read.")]
Picture = Annotated[Path | None, typer.Option("--picture", hidden=True, help="Write the last look to this SVG file.")]


Draw = Callable[[Any, float], "RenderableType"]


@app.callback()
def _demos() -> None:
    """Each demo is a command of its own."""


@app.command()
def pageviews(rate: Rate = 2000, seconds: Seconds = None, home: Home = None, picture: Picture = None, as_json: render.Json = False) -> None:
    """Page views are written to the log, and a job counts them per URL and minute, live. Ctrl-C stops it; the next run continues."""
    from headrace.cli.demos.board import board
    from headrace.cli.demos.pageviews import PageViews

    demo = PageViews(_settings(home, "demo"), rate=rate)
    figures = _run(demo, board, rate, seconds=seconds, as_json=as_json)
    if figures is None:
        return
    place = demo.app.settings.home
    said = f"{figures.written:,} page views written and {figures.counted:,} counted in {figures.seconds:.0f} s"
    _summary(figures, place, f"{said}; the counts: headrace tail views_so_far --home {place}", as_json=as_json)
    if picture is not None:
        _draw(board(figures, rate), "make demo", picture)


@app.command()
def fraud(rate: Rate = 200, seconds: Seconds = None, home: Home = None, picture: Picture = None, as_json: render.Json = False) -> None:
    """Card payments are written to the log, some of them fraud, and four rules and a model judge each, live. Ctrl-C stops it."""
    from headrace.cli.demos.fraud.board import board
    from headrace.cli.demos.fraud.demo import FraudDemo

    demo = FraudDemo(_settings(home, "demo-fraud"), rate=rate)
    figures = _run(demo, board, rate, seconds=seconds, as_json=as_json)
    if figures is None:
        return
    place, found, planted = demo.app.settings.home, sum(one.found for one in figures.rules), sum(one.planted for one in figures.rules)
    said = f"{figures.judged:,} of {figures.written:,} payments judged, {found:,} of {planted:,} planted frauds found"
    _summary(figures, place, f"{said} in {figures.seconds:.0f} s; the alerts: headrace tail alerts --home {place}", as_json=as_json)
    if picture is not None:
        _draw(board(figures, rate), "headrace demo fraud", picture)


def _settings(home: Path | None, folder: str) -> Settings:
    """The settings of a demo; without a home of its own, it has a folder in the usual one."""
    from dataclasses import replace

    from headrace.core.settings import load_settings

    settings = load_settings(home=home)
    return settings if home is not None else replace(settings, home=settings.home / folder)


def _run(demo: LiveDemo[F], draw: Draw, rate: float, *, seconds: float | None, as_json: bool) -> F | None:
    """Run a demo until it ends or is stopped, and return its last figures."""
    figures = None
    with demo, nullcontext() if render.for_programs(as_json) else _page(demo.app.settings.home):
        with _shown(draw, rate, as_json=as_json) as show:
            for figures in demo.looks(seconds=seconds):
                show(figures)
        render.note("stopping ...")
    return figures


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
def _shown(draw: Draw, rate: float, *, as_json: bool) -> Iterator[Callable[[Any], None]]:
    """A board that is updated in place on a terminal, a line each second for programs."""
    if render.for_programs(as_json):
        yield _Lines()
        return
    from rich.live import Live

    with Live(console=render.console(), auto_refresh=False) as live:
        yield lambda figures: live.update(draw(figures, rate), refresh=True)


class _Lines:
    """Progress as NDJSON, once a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, figures: DemoFigures) -> None:
        if figures.seconds >= self._next:
            self._next = figures.seconds + 1
            render.record(figures.row())


def _summary(figures: DemoFigures, home: Path, said: str, *, as_json: bool) -> None:
    if render.for_programs(as_json):
        render.record({**figures.row(), "ended": True, "home": home})
    else:
        render.note(said)


def _draw(drawn: RenderableType, title: str, file: Path) -> None:
    import io
    import re

    from rich.console import Console
    from rich.terminal_theme import MONOKAI

    from headrace.cli.demos.board import WIDTH

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(drawn)
    svg = console.export_svg(title=title, theme=MONOKAI)
    # Without the fonts that it would load from elsewhere: a picture in a document makes no requests.
    file.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")
