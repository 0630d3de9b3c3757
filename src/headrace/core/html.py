"""Tables as HTML, for notebooks: plain markup that takes the colors of the place it is shown in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

import pyarrow as pa

from headrace.core.columns.schema import type_name

_CELL = "padding:2px 10px 2px 0;text-align:{};font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px"


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as a table; numbers stand right.

    >>> "<td" in table([{"url": "/", "views": 1}])
    True
    """
    names = list(columns if columns is not None else rows[0] if rows else ())
    heads = "".join(f'<th style="padding:2px 10px 2px 0;text-align:left">{escape(name)}</th>' for name in names)
    lines = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def schema(columns: pa.Schema, keys: Iterable[str] = ()) -> str:
    """Columns with their types, and which are the key."""
    known = set(keys)
    return table([{"column": one.name, "type": type_name(one.type), "key": "key" if one.name in known else ""} for one in columns])


def part(title: str, content: str) -> str:
    """Content below a title; nothing where there is no content."""
    return f'<div style="margin:6px 0"><b>{escape(title)}</b>{content}</div>' if content else ""


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = "" if value is None else f"{value:,}" if isinstance(value, int) and number else _spelled(value)
    return f'<td style="{_CELL.format("right" if number else "left")}">{escape(text)}</td>'


def _spelled(value: Any) -> str:
    return value.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z") if isinstance(value, datetime) else str(value)
