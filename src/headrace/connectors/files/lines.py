"""Lines of text as values, each with its number; for a line that cannot be read, the error."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from headrace.core.errors import SchemaError
from headrace.schema.values import float_of

# The number of a line, and its value, or the ValueError that says why it has none.
Line = tuple[int, Any]


def plain_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """Lines as they are, without their line ends; empty ones are left out."""
    for number, line in enumerate(lines, 1):
        stripped = line.removesuffix(b"\n").removesuffix(b"\r")
        if stripped:
            yield number, stripped


def json_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """One JSON value for each line.

    >>> list(json_lines([b'{"a": 1}', b"", b"[2]"]))
    [(1, {'a': 1}), (3, [2])]
    """
    for number, line in plain_lines(lines):
        try:
            yield number, json.loads(line, parse_constant=_refuse_constant, parse_float=float_of)
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"this is not JSON: {error}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def csv_lines(lines: Iterable[str], known: Collection[str]) -> Iterator[Line]:
    """Rows of cells by name; the first line names them, each one of those that are `known`, and once."""
    rows = csv.DictReader(lines, strict=True)
    header = rows.fieldnames or []
    for name in header:
        if name not in known or header.count(name) > 1:
            what = "names two columns" if name in known else "is not a column of the topic"
            raise SchemaError(f"line 1: {name!r} {what}", why="nothing was sent", hint=f"known: {', '.join(known)}")
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield rows.line_num, ValueError(f"this is not CSV: {error}")
            continue
        if row is None:
            return
        wrong = None in row or None in row.values()
        yield rows.line_num, ValueError(f"it does not have the {len(header)} cells of the first line") if wrong else row
