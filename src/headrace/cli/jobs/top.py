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
_TEXTS = ("job", "state", "watermark")
# What is left out of a narrow terminal, one after the other. A number is shown as a whole or not at all.
_SPARE = ("bytes", "epoch", "out/s", "state rows", "state")
# Between two columns, and of the first at least.
_GAP, _SHORTEST = 3, 9
# Without a terminal nothing is cut off.
_WIDTH = 200
_STYLES = {"running": "green", "failed": "red", "killed": "red"}


def top(
    home: Home = None,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two updates.")] = 1.0,
    as_json: render.Json = False,
) -> None:
    """Every job of a home and its steps, live: rates, lag, watermark and what holds it back, state. Without a terminal, once as text."""
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

        Console(width=_WIDTH, no_color=True).print(_drawn(overview.rows(), _WIDTH))
        return
    from rich.live import Live

    console = render.console()
    with Live(_drawn(overview.rows(), console.width), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(_drawn(overview.rows(), console.width), refresh=True)
        except KeyboardInterrupt:
            return


def _drawn(rows: Iterable[dict[str, Any]], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown, cells = _fitting(list(rows), width)
    drawn = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in shown:
        # Only names are cut off where even the rest is too wide.
        room = max(_SHORTEST, width - _width(shown[1:], cells) - _GAP) if column == "job" else None
        drawn.add_column(column, justify="left" if column in _TEXTS else "right", no_wrap=True, max_width=room)
    for row in cells:
        bold = "" if row["job"].startswith(" ") else "bold"
        drawn.add_row(*(Text(row[column], style=_STYLES.get(row[column], bold)) for column in shown))
    return drawn


def _fitting(rows: list[dict[str, Any]], width: int) -> tuple[list[str], list[dict[str, str]]]:
    """The columns for which there is room, and the cells of the rows.

    The day of the watermark is left out first, and what holds it before the state.
    """
    whole = [_cells(row) for row in rows]
    hours = [{**row, "watermark": row["watermark"][11:]} for row in whole]
    alone = [{**row, "watermark": row["watermark"][11:19]} for row in whole]
    fewer = [[column for column in _COLUMNS if column not in _SPARE[:count]] for count in range(len(_SPARE) + 1)]
    tried = [(fewer[0], whole), *((shown, hours) for shown in fewer[:-1]), *((shown, alone) for shown in fewer[-2:])]
    return next((one for one in tried if _width(*one) <= width), tried[-1])


def _width(shown: Iterable[str], cells: Iterable[dict[str, str]]) -> int:
    return sum(max(map(len, [column, *(row[column] for row in cells)])) + _GAP for column in shown)


def _cells(row: dict[str, Any]) -> dict[str, str]:
    held = f" (held by {row['held_by']})" if row["held_by"] else ""
    watermark = f"{row['watermark'][:19].replace('T', ' ')}{held}" if row["watermark"] else ""
    lag = _number(row["lag"]) + (f" ({row['lag_seconds']:.0f} s)" if row["lag_seconds"] else "")
    rates = [f"{row[name]:,.0f}" for name in ("in_rate", "out_rate")]
    counts = [_number(row[name]) for name in ("late", "dead_letter", "state_rows", "state_bytes")]
    name = row["job"] if row["step"] is None else f"  {row['step']}"
    return dict(zip(_COLUMNS, [name, row["state"], _number(row["epoch"]), *rates, lag, watermark, *counts], strict=True))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
