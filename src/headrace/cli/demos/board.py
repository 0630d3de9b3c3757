"""The live picture of the demo in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.align import Align
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headrace.cli.demos.figures import Figures

WIDTH = 92
_BAR = 28
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def board(figures: Figures, rate: float) -> RenderableType:
    """All of it: the figures above, the most viewed URLs below."""
    return Panel(
        Group(_figures(figures), Text(), _top(figures)),
        title=Text("headrace demo pageviews", style="bold"),
        subtitle=Text(f"{rate:,.0f} views a second are written to the log; Spark counts them; Ctrl-C stops", style="dim"),
        box=box.ROUNDED, border_style="blue", padding=(1, 2), width=WIDTH,
    )  # fmt: skip


def _figures(figures: Figures) -> RenderableType:
    starting = figures.epoch_seconds is None
    late = "yellow" if starting or figures.lag_seconds > 5 else "green"
    cells = [
        ("in", f"{figures.rate_in:,.0f}/s", "cyan", f"{figures.written:,} views"),
        ("out", "none yet" if starting else f"{figures.rate_out:,.0f}/s", "cyan", f"{figures.counted:,} counted"),
        ("lag", f"{figures.lag_rows:,} rows", late, f"{figures.lag_seconds:.1f} s"),
        ("watermark", f"{figures.watermark:%H:%M:%S}" if figures.watermark else "none yet", "magenta", _epoch(figures)),
    ]
    return figure_row(cells)


def figure_row(cells: Sequence[tuple[str, str, str, str]]) -> RenderableType:
    """Figures next to each other: a label, the value with its style, and a remark below."""
    grid = Table.grid(expand=True)
    for _ in cells:
        grid.add_column(ratio=1, no_wrap=True)
    grid.add_row(*(Text(label, style="dim") for label, *_ in cells))
    grid.add_row(*(Text(value, style=f"bold {style}") for _, value, style, _ in cells))
    grid.add_row(*(Text(below) for *_, below in cells))
    return grid


def _epoch(figures: Figures) -> str:
    return "no epoch yet" if figures.epoch_seconds is None else f"epochs of {figures.epoch_seconds:.2f} s"


def _top(figures: Figures) -> RenderableType:
    if not figures.top:
        return Align.center(Text("Spark is starting ...", style="dim"), height=14, vertical="middle")
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, expand=True)
    table.add_column("url", width=20, no_wrap=True)
    table.add_column(f"views since {figures.minute:%H:%M} UTC", width=_BAR)
    table.add_column("this minute", justify="right")
    table.add_column("last minute", justify="right", style="dim")
    most = figures.top[0][1]
    for url, views, before in figures.top:
        table.add_row(url, Text(bar(views / most), style="blue"), f"{views:,}", f"{before:,}" if before else "")
    return table


def bar(share: float, width: int = _BAR) -> str:
    """A bar of blocks, drawn to an eighth of a cell.

    >>> bar(0.5, 4)
    '██'
    """
    whole, rest = divmod(round(share * width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
