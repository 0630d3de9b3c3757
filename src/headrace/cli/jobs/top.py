"""`headrace top`: the jobs of a home, live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.places import Home, log_at

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("job", "state", "epoch", "in/s", "out/s", "lag", "watermark", "late", "dead", "state rows", "bytes")
# Without a terminal nothing is cut off.
_WIDTH = 200
_STYLES = {"running": "green", "failed": "red", "killed": "red"}


def top(
    home: Home = None,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two updates.")] = 1.0,
    as_json: render.Json = False,
) -> None:
    """Every job of a home and its steps, live: rates, lag, watermark and what holds it back, state. Without a terminal, one update as
    text."""
    import sys
    import time

    from headrace.core.settings import load_settings
    from headrace.serve.overview import Overview

    overview = Overview(load_settings(home=home).home, log_at(home))
    if as_json:
        render.table(overview.rows(), as_json=True)
        return
    if not sys.stdout.isatty():
        from rich.console import Console

        Console(width=_WIDTH, no_color=True).print(_drawn(overview.rows()))
        return
    from rich.live import Live

    with Live(_drawn(overview.rows()), console=render.console(), screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(_drawn(overview.rows()), refresh=True)
        except KeyboardInterrupt:
            return


def _drawn(rows: Iterable[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in _COLUMNS:
        drawn.add_column(column, justify="left" if column in ("job", "state", "watermark") else "right", no_wrap=True)
    for row in rows:
        cells = _cells(row)
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "bold" if row["step"] is None else "")) for cell in cells))
    return drawn


def _cells(row: dict[str, Any]) -> list[str]:
    held = f" (held by {row['held_by']})" if row["held_by"] else ""
    watermark = f"{row['watermark'][:19].replace('T', ' ')}{held}" if row["watermark"] else ""
    lag = _number(row["lag"]) + (f" ({row['lag_seconds']:.0f} s)" if row["lag_seconds"] else "")
    rates = [f"{row[name]:,.0f}" for name in ("in_rate", "out_rate")]
    counts = [_number(row[name]) for name in ("late", "dead_letter", "state_rows", "state_bytes")]
    return [row["job"] if row["step"] is None else f"  {row['step']}", row["state"], _number(row["epoch"]), *rates, lag, watermark, *counts]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
