"""The live picture of the fraud demo in a terminal."""

from __future__ import annotations

from rich import box
from rich.align import Align
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headrace.cli.demos.board import WIDTH, figure_row
from headrace.cli.demos.fraud.figures import FraudFigures
from headrace.cli.demos.fraud.rules import RULES

_ROWS = 8


def board(figures: FraudFigures, rate: float) -> RenderableType:
    """All of it: the figures, the rules with what they found, and the latest alerts."""
    parts = [_figures(figures), Text(), _rules(figures), _latest(figures)]
    return Panel(
        Group(*parts),
        title=Text("headrace demo fraud", style="bold"),
        subtitle=Text(f"{rate:,.0f} payments a second, some of them fraud; five rules judge each; Ctrl-C stops", style="dim"),
        box=box.ROUNDED, border_style="red", padding=(1, 2), width=WIDTH,
    )  # fmt: skip


def _figures(figures: FraudFigures) -> RenderableType:
    starting = figures.epoch_seconds is None
    late = "yellow" if starting or figures.lag_rows > 5 * max(figures.rate_in, 1) else "green"
    epochs = "no epoch yet" if figures.epoch_seconds is None else f"epochs of {figures.epoch_seconds:.2f} s"
    latency = "none yet" if figures.latency_p50 is None else f"{figures.latency_p50:,.0f} ms"
    slowest = "" if figures.latency_p99 is None else f"p99 {figures.latency_p99:,.0f} ms"
    cells = [
        ("in", f"{figures.rate_in:,.0f}/s", "cyan", f"{figures.written:,} payments"),
        ("judged", "none yet" if starting else f"{figures.rate_out:,.0f}/s", "cyan", f"{figures.judged:,} payments"),
        ("lag", f"{figures.lag_rows:,} rows", late, epochs),
        ("payment to alert, p50", latency, "magenta", slowest),
    ]
    return figure_row(cells)


def _rules(figures: FraudFigures) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, expand=True)
    table.add_column("rule", no_wrap=True)
    table.add_column("", no_wrap=True, style="dim", ratio=1)
    for name in ("alerts", "planted", "found"):
        table.add_column(name, justify="right")
    for one in figures.rules:
        style = "green" if one.found == one.planted else "yellow"
        table.add_row(one.rule, RULES[one.rule], f"{one.alerts:,}", f"{one.planted:,}", Text(f"{one.found:,}", style=style))
    return table


def _latest(figures: FraudFigures) -> RenderableType:
    if not figures.latest:
        said = "Spark is starting ..." if figures.epoch_seconds is None else "no alert yet"
        return Align.center(Text(said, style="dim"), height=_ROWS + 4, vertical="middle")
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, expand=True)
    for name in ("paid at", "card", "rule"):
        table.add_column(name, no_wrap=True)
    for name in ("payments", "total", "score", "latency"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in figures.latest[:_ROWS]:
        score = "" if row["score"] is None else f"{row['score']:.3f}"
        shown = (f"{row['paid_at']:%H:%M:%S}", str(row["card"]), Text(str(row["rule"]), style="red"), str(row["payments"]))
        table.add_row(*shown, f"${row['total']:,.2f}", score, f"{row['latency_ms']:,.0f} ms")
    for _ in range(_ROWS - len(figures.latest)):
        table.add_row()
    return table
