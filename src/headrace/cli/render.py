"""Output for people and for programs: tables on a terminal, NDJSON in a pipe, remarks and errors on stderr.

Color follows the terminal and NO_COLOR.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.core.durations import spelled
from headrace.core.errors import HeadraceError

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, object]
_PLACE = ("_partition", "_offset", "_time")
# Wider than any table.
_UNBOUNDED = 1_000_000
Json = Annotated[bool, typer.Option("--json", help="One JSON object in each line, on a terminal too.")]


def for_programs(as_json: bool) -> bool:
    """Whether the reader is a program: `--json` was given, or stdout is not a terminal."""
    return as_json or not sys.stdout.isatty()


def table(rows: Iterable[Row], *, as_json: bool = False, empty: str = "nothing to show", styles: Mapping[str, str] | None = None) -> None:
    """Print rows: a table whose columns are the keys of the first row, or NDJSON; `styles` maps a cell's text to its rich style."""
    if for_programs(as_json):
        for row in rows:
            record(row)
        return
    listed = list(rows)
    if listed:
        console().print(_rich_table(listed, styles or {}))
    else:
        note(empty)


def accounting(rows: Iterable[Row], *, as_json: bool) -> None:
    """The fate of the records of each step; for people without the reasons, which are printed below."""
    if not for_programs(as_json):
        rows = [{name: value for name, value in row.items() if not name.endswith("_reason")} for row in rows]
        if not any(row["partly_late"] for row in rows):
            rows = [{name: value for name, value in row.items() if name != "partly_late"} for row in rows]
    table(rows, as_json=as_json, empty="no records moved yet")


def records(rows: Iterable[Row], *, as_json: bool = False, empty: str = "nothing to show") -> None:
    """Print records: as `table` where their columns fit the terminal, else one below the other, with a line for each column."""
    if for_programs(as_json):
        table(rows, as_json=True)
        return
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    listed, shown = list(rows), console()
    drawn = _rich_table(listed, {}) if listed else None
    if drawn is None or shown.measure(drawn, options=shown.options.update(width=_UNBOUNDED)).maximum <= shown.width:
        table(listed, empty=empty)
        return
    for row in listed:
        columns = Table.grid(padding=(0, 2, 0, 2))
        columns.add_column(style="dim", no_wrap=True)
        columns.add_column(overflow="fold")
        for name, value in row.items():
            if name not in _PLACE:
                columns.add_row(name, Text(_cell(value)))
        shown.print(Group(Text(_place(row), style="bold"), columns))


def record(row: Row) -> None:
    """Print one row as one line of JSON, at once, so that a following program sees it without delay."""
    sys.stdout.write(to_json(row) + "\n")
    sys.stdout.flush()


def line(row: Row, *, as_json: bool = False) -> None:
    """Print one row of many that keep coming: for people its place and time, then its values; else as `record`."""
    if for_programs(as_json):
        record(row)
        return
    from rich.text import Text

    values = {name: value for name, value in row.items() if name not in _PLACE}
    text = Text(_place(row), style="dim").append(" ").append(to_json(values), style="default")
    console().print(text, soft_wrap=True)


def to_json(row: Row) -> str:
    """One line of strict JSON.

    Times are ISO 8601 in UTC, durations seconds, decimals text, bytes text where they are UTF-8 and base64 otherwise; NaN and
    infinity, which JSON lacks, are null.

    >>> to_json({"topic": "clicks", "lag": float("nan"), "age": timedelta(seconds=1.5)})
    '{"topic": "clicks", "lag": null, "age": 1.5}'
    """
    return json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)


def words(text: str) -> None:
    """Print text as it is."""
    console().print(text, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """A remark next to the output, on stderr."""
    console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def error(problem: HeadraceError) -> None:
    """An error as fact, why, hint and place, on stderr."""
    from rich.text import Text

    text = Text("error: ", style="bold red").append(problem.fact, style="default")
    for label, detail, style in (("why", problem.why, "dim"), ("hint", problem.hint, "green"), ("where", problem.where, "dim")):
        if detail:
            text.append(f"\n  {label}: ", style=style).append(detail, style="default")
    console(stderr=True).print(text, soft_wrap=True)


def console(*, stderr: bool = False) -> Console:
    """A rich console on the stream as it is now."""
    from rich.console import Console

    return Console(stderr=stderr)


def _place(row: Row) -> str:
    """The partition and offset of a record, and its time."""
    place = ":".join(str(row[name]) for name in ("_partition", "_offset") if name in row)
    return " ".join(filter(None, (place, _cell(row.get("_time")))))


def _rich_table(rows: Sequence[Row], styles: Mapping[str, str]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = list(rows[0])
    drawn = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | Decimal) for row in rows)
        drawn.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        cells = [_cell(row.get(column)) for column in columns]
        drawn.add_row(*(Text(cell, style=styles.get(cell, "")) for cell in cells))
    return drawn


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}" if math.isfinite(value) and abs(value) < 10_000 else f"{value:,.0f}"
        case timedelta():
            return spelled(value)
        case str():
            return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return _text(bytes(value))
        case date():
            return value.isoformat()
        case list() | tuple() | set() | frozenset():
            return [_plain(inner) for inner in value]
        case Decimal() | Path():
            return str(value)
    return repr(value)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
