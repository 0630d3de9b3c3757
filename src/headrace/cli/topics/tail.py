"""`headrace tail`: the last records of a topic, all records from a place on, or new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import render
from headrace.cli.places import Home, TopicName, log_at, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_PLACES = "beginning, end, an offset, a time, or how long ago (10 minutes)."


def tail(
    topic: TopicName,
    last: Annotated[int, typer.Option("--last", "-n", min=0, help="The number of last records of each partition.")] = 10,
    start: Annotated[str | None, typer.Option("--from", help=f"Everything from here on: {_PLACES}")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more, until Ctrl-C.")] = False,
    where: Annotated[
        str | None, typer.Option("--where", "-w", help="Only records for which this is true: \"country = 'NL' and price > 10\".")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Columns to show, separated by commas; _key and _headers can be named, too.")
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", help="Only this partition.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-l", min=0, help="Stop after this many records.")] = None,
    home: Home = None,
    as_json: render.Json = False,
) -> None:
    """Show the last records of a topic, all records from a position on, or new ones as they come."""
    from headrace.cli.where import filter_of
    from headrace.log.tail import Tail
    from headrace.log.tail import tail as read

    log = log_at(home)
    wanted = Tail(
        start=place(start) if start is not None else None, last=last, limit=limit, partition=partition, follow=follow,
        columns=tuple(name.strip() for name in columns.split(",")) if columns is not None else None,
        keep=filter_of(where, log.topic(topic)) if where is not None else None,
    )  # fmt: skip
    tables = read(log, topic, wanted)
    if follow:
        for row in _rows(tables):
            render.line(row, as_json=as_json)
    else:
        render.records(_rows(tables), as_json=as_json, empty=f"no records in {topic}")


def _rows(tables: Iterator[pa.Table]) -> Iterator[dict[str, object]]:
    for table in tables:
        for batch in table.to_batches(max_chunksize=1000):
            yield from batch.to_pylist()
