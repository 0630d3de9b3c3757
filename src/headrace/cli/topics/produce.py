"""`headrace produce`: send records from the command line, a stream of lines, or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import render
from headrace.cli.places import Home, TopicName, log_at

_TOLD = 10

Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", allow_dash=True, exists=True, dir_okay=False, help="Rows of a CSV file with a header line (- for stdin)."
    ),
]
Parquet = Annotated[Path | None, typer.Option("--parquet", metavar="FILE", exists=True, dir_okay=False, help="Rows of a Parquet file.")]


def produce(
    topic: TopicName,
    records: Annotated[list[str] | None, typer.Argument(metavar="RECORD", help="JSON objects; without any, lines from stdin.")] = None,
    csv: Csv = None,
    parquet: Parquet = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The field that is the key, if the topic has no key column.")] = None,
    time: Annotated[str | None, typer.Option("--time", "-t", help="The field that is the time, if the topic has no time column.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="The separator of key and value in the lines of a topic of bytes.")
    ] = None,
    acks: Annotated[str, typer.Option(help="all: wait until records are on disk; 1: until they are written.")] = "all",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip lines that do not fit, and count them.")] = False,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Send records to a topic: one JSON object in each line, rows of CSV or Parquet, or lines as they are for a topic of bytes."""
    from headrace.connectors.files.feed import Feed, feed_csv, feed_ndjson, feed_parquet

    if sum(given is not None for given in (records or None, csv, parquet)) > 1:
        raise typer.BadParameter("give records, --csv or --parquet, and only one of them")
    feed = Feed(key=key, time=time, separator=key_separator, acks=acks, on_bad=_Skipped() if skip_bad else None)
    log = log_at(home)
    if parquet is not None:
        fed = feed_parquet(log, topic, parquet, feed)
    elif csv is not None:
        with _opened(csv) as lines:
            fed = feed_csv(log, topic, lines, feed)
    else:
        fed = feed_ndjson(log, topic, _lines(records), feed)
    if render.for_programs(as_json):
        render.record({"topic": topic, "stored": fed.stored, "skipped": fed.skipped})
    else:
        stored = "1 record" if fed.stored == 1 else f"{fed.stored:,} records"
        render.note(f"{stored} stored in {topic}" + (f", {fed.skipped:,} lines skipped" if skip_bad else ""))


class _Skipped:
    """Reports the first bad lines; the rest are only counted."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, number: int, fact: str) -> None:
        self._told += 1
        if self._told <= _TOLD:
            render.note(f"line {number} is skipped: {fact}")
        elif self._told == _TOLD + 1:
            render.note("more lines are skipped; they are counted")


def _lines(records: list[str] | None) -> Iterable[bytes]:
    if records:
        return [record.encode() for record in records]
    if sys.stdin.isatty():
        render.note("one record in each line; Ctrl-D ends")
    return sys.stdin.buffer


def _opened(path: Path) -> Any:
    if str(path) == "-":
        return open(sys.stdin.fileno(), encoding="utf-8-sig", newline="", closefd=False)
    return path.open(encoding="utf-8-sig", newline="")
